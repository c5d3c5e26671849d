//! A TCP connection to a fakechat, which may be open before there is something to say on it.

use std::cell::Cell;
use std::io;
use std::rc::Rc;
use std::time::Duration;

use actix_service::fn_service;
use actix_tls::connect::{ConnectError, ConnectInfo, Connection as Connected};
use awc::http::Uri;
use rustix::io::Errno;
use rustix::net::{RecvFlags, recv};
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
        // The kernel is asked: what tokio knows of it may be older.
        recv(&self.0, &mut [0], RecvFlags::PEEK | RecvFlags::DONTWAIT).is_err_and(|error| error == Errno::AGAIN)
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

#[cfg(test)]
mod tests {
    use std::io::Write;
    use std::net::TcpListener;

    use super::*;

    #[tokio::test]
    async fn one_that_the_peer_has_closed_or_spoken_on_is_not_used() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        for closed in [true, false] {
            let connection = Connection::open(listener.local_addr().unwrap().port()).await.unwrap();
            let (mut peer, _) = listener.accept().unwrap();
            assert!(connection.is_unused());
            if closed {
                drop(peer);
            } else {
                peer.write_all(b"HTTP/1.1 204 No Content\r\n\r\n").unwrap();
            }
            assert!(!connection.is_unused());
        }
    }
}
