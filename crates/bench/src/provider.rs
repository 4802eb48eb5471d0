//! Simulated provider over loopback HTTP.

use crate::Error;
use serde_json::Value;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::path::Path;
use std::process::{Child, Command, Stdio};

/// Simulated provider in a separate process.
pub(crate) struct SimProcess {
    child: Child,
    pub(crate) base_url: String,
}

impl SimProcess {
    /// Starts `bakeoff sim` with these arguments on a free port.
    pub(crate) fn start(program: &Path, arguments: &[&str]) -> Result<SimProcess, Error> {
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
        let provider = SimProcess { child, base_url };
        if provider.base_url.is_empty() { Err(Error::NoProvider) } else { Ok(provider) }
    }
}

impl SimProcess {
    /// Returns the counts of the provider.
    pub(crate) fn stats(&self) -> Result<Value, Error> {
        let address = self.base_url.trim_start_matches("http://").trim_end_matches("/v1");
        let fetch = || {
            let mut stream = TcpStream::connect(address)?;
            stream.write_all(b"GET /stats HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n")?;
            let mut answer = String::new();
            stream.read_to_string(&mut answer)?;
            Ok::<String, std::io::Error>(answer)
        };
        let answer = fetch().map_err(|error| Error::Stats(error.to_string()))?;
        // The body may be chunked, with sizes on separate lines.
        let json = answer.lines().find(|line| line.starts_with('{')).unwrap_or_default();
        serde_json::from_str(json).map_err(|error| Error::Stats(error.to_string()))
    }
}

impl Drop for SimProcess {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
