//! HTTP/2 proxy with TLS in front of the simulated provider: `nghttpx` with a self-signed certificate.

use crate::Error;
use crate::scratch::Scratch;
use std::net::{TcpListener, TcpStream};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// Time for the proxy to start.
const START_TIMEOUT: Duration = Duration::from_secs(10);
const POLL_INTERVAL: Duration = Duration::from_millis(20);

/// A running proxy.
pub(crate) struct Proxy {
    child: Child,
    /// Base URL of the provider behind the proxy.
    pub(crate) base_url: String,
    /// Certificate that the client must trust.
    pub(crate) certificate: PathBuf,
}

/// Returns the programs that the proxy needs and that are not installed.
pub(crate) fn missing_programs() -> Vec<&'static str> {
    let is_missing = |(program, argument): &(&str, &str)| {
        let mut command = Command::new(program);
        command.arg(argument).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        command.status().is_err()
    };
    let programs = [("nghttpx", "--version"), ("openssl", "version")];
    programs.into_iter().filter(is_missing).map(|(program, _)| program).collect()
}

impl Proxy {
    /// Starts a proxy to a provider with a maximum number of streams per connection.
    pub(crate) fn start(folder: &Scratch, base_url: &str, streams: u32) -> Result<Proxy, Error> {
        let (key, certificate) = create_certificate(folder)?;
        let io_error = |action, source| Error::Io { action, path: "nghttpx".into(), source };
        let backend = base_url.trim_start_matches("http://").trim_end_matches("/v1");
        let (host, backend_port) = backend.split_once(':').ok_or(Error::NoProxy)?;
        // nghttpx cannot report a port of its choice, so a free one is reserved and released.
        let port = TcpListener::bind(("127.0.0.1", 0))
            .and_then(|listener| listener.local_addr())
            .map_err(|source| io_error("find a port for", source))?
            .port();
        let child = Command::new("nghttpx")
            // One process, so that killing it leaves no worker behind.
            .args(["--single-process", "--conf=/dev/null", "--errorlog-file=/dev/null"])
            .arg(format!("--frontend=127.0.0.1,{port}"))
            .arg(format!("--backend={host},{backend_port}"))
            .arg(format!("--frontend-http2-max-concurrent-streams={streams}"))
            .args([&key, &certificate])
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .map_err(|source| io_error("run", source))?;
        let mut proxy =
            Proxy { child, base_url: format!("https://localhost:{port}/v1"), certificate };
        proxy.wait_until_listening(port)?;
        Ok(proxy)
    }

    fn wait_until_listening(&mut self, port: u16) -> Result<(), Error> {
        let started = Instant::now();
        while started.elapsed() < START_TIMEOUT {
            if TcpStream::connect(("127.0.0.1", port)).is_ok() {
                return Ok(());
            }
            if !matches!(self.child.try_wait(), Ok(None)) {
                break;
            }
            std::thread::sleep(POLL_INTERVAL);
        }
        Err(Error::NoProxy)
    }
}

impl Drop for Proxy {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Creates a key and a self-signed certificate for `localhost`.
fn create_certificate(folder: &Scratch) -> Result<(PathBuf, PathBuf), Error> {
    let key = folder.folder().join("key.pem");
    let certificate = folder.folder().join("certificate.pem");
    let status = Command::new("openssl")
        .args(["req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1"])
        .args(["-nodes", "-days", "2", "-subj", "/CN=localhost"])
        .args(["-addext", "subjectAltName=DNS:localhost,IP:127.0.0.1"])
        .args(["-addext", "basicConstraints=critical,CA:FALSE", "-keyout"])
        .arg(&key)
        .arg("-out")
        .arg(&certificate)
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status()
        .map_err(|source| Error::Io { action: "run", path: "openssl".into(), source })?;
    if status.success() { Ok((key, certificate)) } else { Err(Error::NoProxy) }
}
