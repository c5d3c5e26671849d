//! A multipart form, its length known before it is sent.

use bytes::Bytes;

/// The parts of a form as bytes: what stands before the file, and what ends the form.
pub struct Form {
    /// The value of the request's `Content-Type`.
    pub content_type: String,
    /// Everything up to the file's first byte, or, without a file, the whole form.
    pub head: Bytes,
    /// Everything after the file's last byte; empty without a file.
    pub tail: Bytes,
}

/// Writes the form with these fields and, where there is one, a file of that name.
pub fn form(fields: &[(&str, &str)], file: Option<&str>) -> Form {
    let boundary = boundary(fields);
    let mut head = Vec::with_capacity(512 + fields.iter().map(|(_, value)| value.len()).sum::<usize>());
    for (name, value) in fields {
        let disposition = format!("--{boundary}\r\nContent-Disposition: form-data; name=\"{name}\"\r\n\r\n");
        head.extend_from_slice(disposition.as_bytes());
        head.extend_from_slice(value.as_bytes());
        head.extend_from_slice(b"\r\n");
    }
    let end = format!("--{boundary}--\r\n");
    let tail = match file {
        None => {
            head.extend_from_slice(end.as_bytes());
            Bytes::new()
        }
        Some(name) => {
            let disposition = format!(
                "--{boundary}\r\nContent-Disposition: form-data; name=\"file\"; filename=\"{}\"\r\n\
                 Content-Type: application/octet-stream\r\n\r\n",
                quoted(name)
            );
            head.extend_from_slice(disposition.as_bytes());
            format!("\r\n{end}").into()
        }
    };
    Form { content_type: format!("multipart/form-data; boundary={boundary}"), head: head.into(), tail }
}

/// A boundary that occurs in no field. In a file it cannot be looked for, but with 128 random bits it need not be.
fn boundary(fields: &[(&str, &str)]) -> String {
    loop {
        let boundary = format!("anna-{:032x}", fastrand::u128(..));
        if !fields.iter().any(|(_, value)| value.contains(&boundary)) {
            return boundary;
        }
    }
}

/// A file name as it may stand between quotes: quotes are written as browsers do, other letters as UTF-8, and what
/// some parser takes for an escape, a folder or the end of the line is replaced.
fn quoted(name: &str) -> String {
    let mut out = String::with_capacity(name.len());
    for c in name.chars() {
        match c {
            '"' => out.push_str("%22"),
            '\\' | '/' => out.push('_'),
            c if c.is_control() => out.push('_'),
            c => out.push(c),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_cannot_leave_its_quotes_or_its_line() {
        assert_eq!(quoted("a\"; name=\"text\r\n\r\nx"), "a%22; name=%22text____x");
        assert_eq!(quoted("../é\\🦀.txt\0"), ".._é_🦀.txt_");
    }

    #[test]
    fn the_parts_are_in_order_and_the_end_is_apart_where_a_file_stands_before_it() {
        let form = form(&[("id", "x"), ("text", "a\r\n\0")], Some("f"));
        let head = String::from_utf8(form.head.to_vec()).unwrap();
        assert!(head.contains("name=\"id\"\r\n\r\nx\r\n--"));
        assert!(head.contains("name=\"text\"\r\n\r\na\r\n\0\r\n--"));
        assert!(head.ends_with("octet-stream\r\n\r\n"));
        assert!(form.tail.starts_with(b"\r\n--anna-") && form.tail.ends_with(b"--\r\n"));
    }
}
