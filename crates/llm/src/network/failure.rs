//! Errors of the HTTP library in terms of the transport.

use crate::transport::{TransportError, TransportErrorKind};
use std::error::Error;
use std::fmt;
use url::Url;

/// Server that a request is sent to.
#[derive(Debug, Clone)]
pub(super) struct Destination {
    /// URL; messages contain only host and port, because the query may contain a secret.
    pub(super) url: Url,
    /// Environment variable that names the proxy, if there is one.
    pub(super) proxy: Option<&'static str>,
}

impl fmt::Display for Destination {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.url.host_str().unwrap_or("the server"))?;
        self.url.port().map_or(Ok(()), |port| write!(f, ":{port}"))
    }
}

/// Describes an error by destination and innermost cause.
pub(super) fn describe(error: reqwest::Error, destination: &Destination) -> TransportError {
    let kind = error_kind(&error, destination);
    let mut cause: &dyn Error = &error;
    while let Some(source) = cause.source() {
        cause = source;
    }
    let cause = error.source().is_some().then(|| cause.to_string());
    describe_cause(kind, destination, cause).with_source(error.without_url())
}

/// Returns the error of a connection that could not be established.
pub(super) fn cannot_connect(
    destination: &Destination,
    cause: impl fmt::Display,
) -> TransportError {
    describe_cause(TransportErrorKind::Connect, destination, Some(cause.to_string()))
}

/// Returns the error of an HTTP/2 stream that ended early.
pub(super) fn lost(error: h2::Error, destination: &Destination) -> TransportError {
    let kind = TransportErrorKind::ConnectionLost;
    describe_cause(kind, destination, Some(error.to_string())).with_source(error)
}

/// Returns the error of an unusable proxy.
pub(super) fn unusable_proxy(
    destination: &Destination,
    cause: impl fmt::Display,
) -> TransportError {
    describe_cause(TransportErrorKind::Proxy, destination, Some(cause.to_string()))
}

fn describe_cause(
    kind: TransportErrorKind,
    destination: &Destination,
    cause: Option<String>,
) -> TransportError {
    let problem = match kind {
        TransportErrorKind::Timeout => "timed out waiting for",
        TransportErrorKind::ConnectionLost => "lost connection to",
        TransportErrorKind::HostNotFound => "cannot find the host",
        TransportErrorKind::Proxy => "cannot use the proxy for",
        TransportErrorKind::Setup
        | TransportErrorKind::Connect
        | TransportErrorKind::Certificate => "cannot connect to",
    };
    let proxy = match (kind, destination.proxy) {
        (TransportErrorKind::Proxy, Some(variable)) => format!(" (from {variable})"),
        _ => String::new(),
    };
    let cause = cause.map_or(String::new(), |cause| format!(": {cause}"));
    TransportError::new(kind, format!("{problem} {destination}{proxy}{cause}"))
}

/// Whether an error comes from the TLS library. It may be inside I/O errors, which hide it from `source`.
fn is_tls_error(error: &(dyn Error + 'static)) -> bool {
    let inner = error.downcast_ref::<std::io::Error>().and_then(std::io::Error::get_ref);
    error.is::<rustls::Error>() || inner.is_some_and(|inner| is_tls_error(inner))
}

fn error_kind(error: &reqwest::Error, destination: &Destination) -> TransportErrorKind {
    if !error.is_connect() {
        return match error.is_timeout() {
            true => TransportErrorKind::Timeout,
            false => TransportErrorKind::ConnectionLost,
        };
    }
    // Over plain HTTP, the connection to the proxy is the only one.
    let is_to_proxy = destination.proxy.is_some() && destination.url.scheme() == "http";
    let mut cause: Option<&(dyn Error + 'static)> = Some(error);
    let mut kind = TransportErrorKind::Connect;
    while let Some(error) = cause {
        // The HTTP library has no types for these.
        let text = error.to_string();
        if is_to_proxy || text.starts_with("tunnel error: ") {
            return TransportErrorKind::Proxy;
        }
        if is_tls_error(error) {
            kind = TransportErrorKind::Certificate;
        } else if text == "dns error" {
            kind = TransportErrorKind::HostNotFound;
        }
        cause = error.source();
    }
    kind
}

#[cfg(test)]
mod tests {
    use super::*;
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    use tokio::net::TcpListener;

    /// Sends a request through a proxy that answers with the given text, or is unreachable.
    async fn fail_at_proxy(url: &str, answer: Option<&'static str>) -> TransportError {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let proxy = format!("http://user:secret@{}", listener.local_addr().unwrap());
        match answer {
            // The task ends with the runtime of the test.
            Some(answer) => drop(tokio::spawn(async move {
                let (mut connection, _) = listener.accept().await.unwrap();
                let _ = connection.read(&mut [0; 1024]).await;
                connection.write_all(answer.as_bytes()).await.unwrap();
            })),
            None => drop(listener),
        }
        let _ = rustls::crypto::ring::default_provider().install_default();
        let builder = reqwest::Client::builder().tls_certs_only([]);
        let client = builder.proxy(reqwest::Proxy::all(proxy).unwrap()).build().unwrap();
        let error = client.get(url).send().await.unwrap_err();
        let destination = Destination { url: Url::parse(url).unwrap(), proxy: Some("ALL_PROXY") };
        describe(error, &destination)
    }

    #[tokio::test]
    async fn failure_of_a_proxy_is_recognised() {
        let authentication = "HTTP/1.1 407 Proxy Authentication Required\r\n\r\n";
        let table = [
            ("https://a.example/", Some(authentication), "authorization required"),
            ("https://a.example/", Some("HTTP/1.1 403 Forbidden\r\n\r\n"), "unsuccessful"),
            ("https://a.example/", Some(""), "unexpected end of file"),
            ("https://a.example/", None, "refused"),
            ("http://a.example/", None, "refused"),
        ];
        for (url, answer, cause) in table {
            let error = fail_at_proxy(url, answer).await;
            assert_eq!(error.kind(), TransportErrorKind::Proxy, "{error}");
            let message = error.to_string();
            assert!(
                message.starts_with("cannot use the proxy for a.example (from ALL_PROXY): "),
                "{message}"
            );
            assert!(message.contains(cause) && !message.contains("secret"), "{message}");
        }
    }
}
