//! HTTP/2 over TLS on this machine: how many connections the network opens, and when requests are repeated.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "tests may panic")]

use bakeoff_llm::{HttpRequest, Network, SendTime, Transport, TransportError, TransportErrorKind};
use bytes::Bytes;
use futures_util::future::{BoxFuture, join_all};
use futures_util::{FutureExt, TryStreamExt};
use h2::server::SendResponse;
use http::{HeaderMap, Method, Response, StatusCode};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Barrier;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::server::TlsStream;

const CA: &[u8] = include_bytes!("fixtures/tls/ca.pem");

/// A certificate of `CA` for localhost, and its key.
const CERTIFICATE: [&[u8]; 2] =
    [include_bytes!("fixtures/tls/server.pem"), include_bytes!("fixtures/tls/server.key")];

/// A certificate as `openssl req -x509` creates it, and its key.
const SELF_SIGNED: [&[u8]; 2] = [
    include_bytes!("fixtures/tls/self-signed.pem"),
    include_bytes!("fixtures/tls/self-signed.key"),
];

/// Serves one connection; the number is its ordinal, from 0.
type Serve = Arc<dyn Fn(usize, TlsStream<TcpStream>) -> BoxFuture<'static, ()> + Send + Sync>;

/// A TLS server that counts connections.
struct Server {
    port: u16,
    connections: Arc<AtomicUsize>,
    network: Network,
}

impl Server {
    async fn start(protocol: &[u8], serve: Serve) -> Server {
        Server::with_certificate(CERTIFICATE, protocol, serve).await
    }

    async fn with_certificate(
        [certificate, key]: [&[u8]; 2],
        protocol: &[u8],
        serve: Serve,
    ) -> Server {
        let key = PrivateKeyDer::from_pem_slice(key).unwrap();
        let certificate = CertificateDer::from_pem_slice(certificate).unwrap();
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let mut config = rustls::ServerConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_no_client_auth()
            .with_single_cert(vec![certificate], key)
            .unwrap();
        config.alpn_protocols = vec![protocol.to_vec()];
        let acceptor = TlsAcceptor::from(Arc::new(config));
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let connections = Arc::new(AtomicUsize::new(0));
        let count = Arc::clone(&connections);
        // The tasks end with the runtime of the test.
        tokio::spawn(async move {
            loop {
                let (tcp, _) = listener.accept().await.unwrap();
                let number = count.fetch_add(1, Ordering::SeqCst);
                let (acceptor, serve) = (acceptor.clone(), Arc::clone(&serve));
                tokio::spawn(async move {
                    if let Ok(tls) = acceptor.accept(tcp).await {
                        serve(number, tls).await;
                    }
                });
            }
        });
        Server { port, connections, network: Network::with_certificates(CA).unwrap() }
    }

    fn connections(&self) -> usize {
        self.connections.load(Ordering::SeqCst)
    }

    fn request(&self) -> HttpRequest {
        HttpRequest {
            method: Method::POST,
            url: format!("https://localhost:{}/v1/chat", self.port).parse().unwrap(),
            headers: HeaderMap::new(),
            body: Bytes::from_static(b"hello"),
            sent: SendTime::default(),
        }
    }

    async fn send(&self) -> Result<String, TransportError> {
        let response = self.network.send(self.request()).await?;
        assert_eq!(response.status, StatusCode::OK);
        let chunks: Vec<Bytes> = response.body.try_collect().await?;
        Ok(String::from_utf8(chunks.concat()).unwrap())
    }
}

/// Serves HTTP/2 with a stream limit; `answer` is called once the request has arrived completely.
fn http2(
    max_streams: u32,
    answer: impl Fn(usize, SendResponse<Bytes>) -> BoxFuture<'static, ()> + Send + Sync + 'static,
) -> Serve {
    let answer = Arc::new(answer);
    Arc::new(move |number, tls| {
        let answer = Arc::clone(&answer);
        async move {
            let mut builder = h2::server::Builder::new();
            let Ok(mut connection) =
                builder.max_concurrent_streams(max_streams).handshake(tls).await
            else {
                return;
            };
            while let Some(Ok((request, respond))) = connection.accept().await {
                let answer = Arc::clone(&answer);
                tokio::spawn(async move {
                    assert_eq!(request.headers()["content-length"], "5");
                    let body: Vec<u8> = read(request.into_body()).await;
                    assert_eq!(body, b"hello");
                    answer(number, respond).await;
                });
            }
        }
        .boxed()
    })
}

async fn read(mut body: h2::RecvStream) -> Vec<u8> {
    let mut all = Vec::new();
    while let Some(chunk) = body.data().await {
        let chunk = chunk.unwrap();
        all.extend_from_slice(&chunk);
        body.flow_control().release_capacity(chunk.len()).unwrap();
    }
    all
}

fn respond(mut respond: SendResponse<Bytes>) {
    let mut body = respond.send_response(Response::new(()), false).unwrap();
    body.send_data(Bytes::from_static(b"answer"), true).unwrap();
}

/// Sends requests to a server that answers only when all of them have arrived. Returns the number of connections.
async fn connections_for(requests: usize, max_streams: u32) -> usize {
    let barrier = Arc::new(Barrier::new(requests));
    let answer = move |_, reply| {
        let barrier = Arc::clone(&barrier);
        async move {
            barrier.wait().await;
            respond(reply);
        }
        .boxed()
    };
    let server = Server::start(b"h2", http2(max_streams, answer)).await;
    // The second round has to reuse the connections.
    for _ in 0..2 {
        let answers = join_all((0..requests).map(|_| server.send())).await;
        assert!(answers.iter().all(|answer| answer.as_ref().unwrap() == "answer"));
    }
    server.connections()
}

#[tokio::test]
async fn requests_beyond_the_stream_limit_get_further_connections() {
    assert_eq!(connections_for(100, 10).await, 10);
}

#[tokio::test]
async fn server_with_one_stream_gets_one_connection_per_request() {
    assert_eq!(connections_for(40, 1).await, 40);
}

#[tokio::test]
async fn server_with_many_streams_gets_few_connections() {
    assert_eq!(connections_for(250, 100).await, 3);
    assert_eq!(connections_for(100, 1_000).await, 1);
}

#[tokio::test]
async fn bodies_larger_than_all_windows_arrive() {
    const BYTES: usize = 20 * 1024 * 1024;
    let serve: Serve = Arc::new(|_, tls| {
        async move {
            let mut connection: h2::server::Connection<_, Bytes> =
                h2::server::handshake(tls).await.unwrap();
            while let Some(Ok((request, mut reply))) = connection.accept().await {
                tokio::spawn(async move {
                    let received = read(request.into_body()).await;
                    let mut body = reply.send_response(Response::new(()), false).unwrap();
                    body.send_data(Bytes::from(received), true).unwrap();
                });
            }
        }
        .boxed()
    });
    let server = Server::start(b"h2", serve).await;
    let body = Bytes::from(vec![7; BYTES]);
    let request = HttpRequest { body: body.clone(), ..server.request() };
    let response = server.network.send(request).await.unwrap();
    let chunks: Vec<Bytes> = response.body.try_collect().await.unwrap();
    assert!(chunks.concat() == body);
}

#[tokio::test]
async fn http1_server_gets_one_connection_per_request() {
    const REQUESTS: usize = 20;
    let barrier = Arc::new(Barrier::new(REQUESTS));
    let serve: Serve = Arc::new(move |_, mut tls| {
        let barrier = Arc::clone(&barrier);
        async move {
            let mut request = [0; 4096];
            let mut length = 0;
            while !request[..length].ends_with(b"hello") {
                match tls.read(&mut request[length..]).await {
                    Ok(0) | Err(_) => return,
                    Ok(more) => length += more,
                }
            }
            barrier.wait().await;
            let response = b"HTTP/1.1 200 OK\r\ncontent-length: 6\r\n\r\nanswer";
            tls.write_all(response).await.unwrap();
            tls.flush().await.unwrap();
        }
        .boxed()
    });
    let server = Server::start(b"http/1.1", serve).await;
    let requests: Vec<HttpRequest> = (0..REQUESTS).map(|_| server.request()).collect();
    let sent: Vec<SendTime> = requests.iter().map(|request| request.sent.clone()).collect();
    let responses = join_all(requests.into_iter().map(|request| server.network.send(request)));
    assert!(responses.await.iter().all(|response| response.as_ref().unwrap().status == 200));
    assert!(sent.iter().all(|sent| sent.get().is_some()));
    // One more, which shows that the server speaks HTTP/1.1.
    assert_eq!(server.connections(), REQUESTS + 1);
}

#[tokio::test]
async fn refused_request_is_repeated_and_a_reset_one_is_not() {
    let requests = Arc::new(AtomicUsize::new(0));
    let count = Arc::clone(&requests);
    let answer = move |_, mut reply: SendResponse<Bytes>| {
        match count.fetch_add(1, Ordering::SeqCst) {
            0 => reply.send_reset(h2::Reason::REFUSED_STREAM),
            1 => respond(reply),
            _ => reply.send_reset(h2::Reason::INTERNAL_ERROR),
        }
        futures_util::future::ready(()).boxed()
    };
    let server = Server::start(b"h2", http2(10, answer)).await;
    assert_eq!(server.send().await.unwrap(), "answer");
    assert_eq!(requests.load(Ordering::SeqCst), 2);
    let error = server.send().await.unwrap_err();
    assert_eq!(error.kind(), TransportErrorKind::ConnectionLost);
    assert_eq!(requests.load(Ordering::SeqCst), 3);
    assert_eq!(server.connections(), 1);
}

#[tokio::test]
async fn connection_that_the_server_closes_is_replaced() {
    let (closed, mut closings) = tokio::sync::mpsc::unbounded_channel();
    let serve: Serve = Arc::new(move |_, tls| {
        let closed = closed.clone();
        async move {
            let mut connection: h2::server::Connection<_, Bytes> =
                h2::server::handshake(tls).await.unwrap();
            let (_, reply) = connection.accept().await.unwrap().unwrap();
            respond(reply);
            connection.graceful_shutdown();
            assert!(!matches!(connection.accept().await, Some(Ok(_))));
            closed.send(()).unwrap();
        }
        .boxed()
    });
    let server = Server::start(b"h2", serve).await;
    for _ in 0..3 {
        assert_eq!(server.send().await.unwrap(), "answer");
        closings.recv().await.unwrap();
    }
    assert_eq!(server.connections(), 3);
}

#[tokio::test]
async fn requests_wait_for_a_stream_if_no_further_connection_can_be_opened() {
    let (arrived, mut arrivals) = tokio::sync::mpsc::unbounded_channel();
    let answer = move |_, reply| {
        arrived.send(reply).unwrap();
        futures_util::future::ready(()).boxed()
    };
    let only_one = http2(1, answer);
    let (refused, mut refusals) = tokio::sync::mpsc::unbounded_channel();
    let serve: Serve = Arc::new(move |number, tls| match number {
        0 => only_one(number, tls),
        _ => {
            drop(tls);
            refused.send(()).unwrap();
            futures_util::future::ready(()).boxed()
        }
    });
    let server = Server::start(b"h2", serve).await;
    let requests: Vec<HttpRequest> = (0..3).map(|_| server.request()).collect();
    let sent: Vec<SendTime> = requests.iter().map(|request| request.sent.clone()).collect();
    let marked = || sent.iter().filter(|sent| sent.get().is_some()).count();
    let statuses = Mutex::new(Vec::new());
    let send_all = join_all(requests.into_iter().map(async |request| {
        let response = server.network.send(request).await.unwrap();
        statuses.lock().unwrap().push(response.status);
        response.body.try_collect::<Vec<Bytes>>().await.unwrap();
    }));
    let answer_all = async {
        for number in 1..=3 {
            let reply = arrivals.recv().await.unwrap();
            if number == 1 {
                refusals.recv().await.unwrap();
            }
            // The time of sending is that of the stream.
            assert_eq!(marked(), number);
            respond(reply);
        }
    };
    tokio::join!(send_all, answer_all);
    assert_eq!(*statuses.lock().unwrap(), [StatusCode::OK; 3]);
}

#[tokio::test]
async fn all_waiting_requests_fail_if_no_connection_can_be_opened() {
    let serve: Serve = Arc::new(|_, _| futures_util::future::ready(()).boxed());
    let server = Server::start(b"h2", serve).await;
    let answers = join_all((0..20).map(|_| server.send())).await;
    let kinds = answers.into_iter().map(|answer| answer.unwrap_err().kind());
    assert_eq!(kinds.collect::<Vec<_>>(), [TransportErrorKind::Connect; 20]);
    assert_eq!(server.connections(), 1);
}

#[tokio::test]
async fn untrusted_certificate_is_recognised() {
    let ignore: Serve = Arc::new(|_, _| futures_util::future::ready(()).boxed());
    let mut server = Server::start(b"h2", Arc::clone(&ignore)).await;
    server.network = Network::default();
    let error = server.send().await.unwrap_err();
    assert_eq!(error.kind(), TransportErrorKind::Certificate, "{error}");

    let mut server = Server::with_certificate(SELF_SIGNED, b"h2", ignore).await;
    server.network = Network::with_certificates(SELF_SIGNED[0]).unwrap();
    let error = server.send().await.unwrap_err();
    assert_eq!(error.kind(), TransportErrorKind::Certificate, "{error}");
    // The hint of a stopped model depends on this text.
    assert!(error.to_string().contains("CaUsedAsEndEntity"), "{error}");
}
