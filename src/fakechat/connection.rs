//! A TCP connection to a fakechat, which may be open before there is something to say on it.

use std::cell::Cell;
use std::io;
use std::rc::Rc;
use std::time::Duration;

use actix_service::fn_service;
use actix_tls::connect::{ConnectError, ConnectInfo, Connection as Connected};
use awc::http::Uri;
use tokio::net::TcpStream;
use tokio::time::timeout;

use super::address;

/// How long to wait for a connection. On loopback it is there at once, or the machine is stalled.
pub const CONNECT_WITHIN: Duration = Duration::from_secs(5);

/// An open connection that nothing was sent on.
#[derive(Debug)]
pub struct Connection(TcpStream);

impl Connection {
    /// Opens one to the fakechat on this port.
    ///
    /// # Errors
    /// There is none to be had, or not within 5 s.
    pub async fn open(port: u16) -> io::Result<Self> {
        timeout(CONNECT_WITHIN, TcpStream::connect(address(port))).await?.map(Connection)
    }

    /// Whether it is still good for a request: the peer has neither closed it nor said something unasked.
    #[must_use]
    pub fn is_unused(&self) -> bool {
        matches!(self.0.try_read(&mut [0]), Err(error) if error.kind() == io::ErrorKind::WouldBlock)
    }
}

/// A client for one request, on this connection if there is one. Nothing is shared, so a peer that hangs holds up
/// nobody else.
pub fn client(port: u16, connection: Option<Connection>) -> awc::Client {
    let connection = Rc::new(Cell::new(connection));
    let connect = fn_service(move |request: ConnectInfo<Uri>| {
        let open = connection.take();
        async move {
            let Connection(stream) = match open {
                Some(open) => open,
                None => Connection::open(port).await.map_err(ConnectError::Io)?,
            };
            Ok::<_, ConnectError>(Connected::new(request.request().clone(), stream))
        }
    });
    awc::Client::builder()
        .connector(awc::Connector::new().timeout(CONNECT_WITHIN).connector(connect))
        .disable_timeout()
        .disable_redirects()
        .no_default_headers()
        .finish()
}
