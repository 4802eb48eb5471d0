//! The simulated provider over loopback HTTP.

use crate::Error;
use serde_json::Value;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::path::Path;
use std::process::{Child, Command, Stdio};

/// The simulated provider, a process of its own.
pub(crate) struct Provider {
    child: Child,
    pub(crate) base_url: String,
}

impl Provider {
    /// `bakeoff sim` on a free port, with these arguments.
    pub(crate) fn start(program: &Path, arguments: &[&str]) -> Result<Provider, Error> {
        let error = |source| Error::Io { action: "run", path: program.to_owned(), source };
        let mut child = Command::new(program)
            .args(["sim", "--port", "0"])
            .args(arguments)
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .map_err(error)?;
        let mut base_url = String::new();
        if let Some(stdout) = child.stdout.take() {
            BufReader::new(stdout).read_line(&mut base_url).map_err(error)?;
        }
        let base_url = base_url.trim().to_owned();
        let provider = Provider { child, base_url };
        if provider.base_url.is_empty() { Err(Error::NoProvider) } else { Ok(provider) }
    }
}

impl Provider {
    /// What the provider has counted.
    pub(crate) fn stats(&self) -> Result<Value, Error> {
        let address = self.base_url.trim_start_matches("http://").trim_end_matches("/v1");
        let ask = || {
            let mut stream = TcpStream::connect(address)?;
            stream.write_all(b"GET /stats HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n")?;
            let mut answer = String::new();
            stream.read_to_string(&mut answer)?;
            Ok::<String, std::io::Error>(answer)
        };
        let answer = ask().map_err(|error| Error::Stats(error.to_string()))?;
        // The body may come in chunks, whose sizes stand on lines of their own.
        let json = answer.lines().find(|line| line.starts_with('{')).unwrap_or_default();
        serde_json::from_str(json).map_err(|error| Error::Stats(error.to_string()))
    }
}

impl Drop for Provider {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
