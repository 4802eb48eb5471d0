//! Reading what a program says without trusting it to be short.

use std::collections::VecDeque;
use tokio::io::{AsyncRead, AsyncReadExt};

/// Bytes kept of the end of a pipe.
const TAIL: usize = 4096;

/// What was read of a pipe.
#[derive(Debug, Default)]
pub(crate) struct Captured {
    bytes: Vec<u8>,
    dropped: u64,
}

impl Captured {
    /// Reads until the end, keeping the first `most` bytes and counting the rest, so that the
    /// program is never held up by a full pipe. All of it is told to `listen`. Progress is kept when
    /// the future is dropped.
    pub(crate) async fn read_from(
        &mut self,
        mut pipe: impl AsyncRead + Unpin,
        most: usize,
        mut listen: impl FnMut(&[u8]),
    ) -> std::io::Result<()> {
        let mut chunk = vec![0; 16 * 1024];
        loop {
            let count = pipe.read(&mut chunk).await?;
            if count == 0 {
                return Ok(());
            }
            listen(&chunk[..count]);
            let kept = count.min(most - self.bytes.len());
            self.bytes.extend_from_slice(&chunk[..kept]);
            self.dropped += (count - kept) as u64;
        }
    }

    /// The text, with bytes that are not UTF-8 replaced, and how many bytes were not kept.
    pub(crate) fn into_text(self) -> (String, u64) {
        let text = match String::from_utf8(self.bytes) {
            Ok(text) => text,
            Err(error) => String::from_utf8_lossy(error.as_bytes()).into_owned(),
        };
        (text, self.dropped)
    }
}

/// The end of what was said.
#[derive(Debug, Default)]
pub(crate) struct Tail(VecDeque<u8>);

impl Tail {
    /// Reads until the pipe is closed. Progress is kept when the future is dropped.
    pub(crate) async fn read_from(&mut self, pipe: &mut Option<impl AsyncRead + Unpin>) {
        let Some(pipe) = pipe else { return };
        let mut chunk = [0; 1024];
        while let Ok(count @ 1..) = pipe.read(&mut chunk).await {
            self.add(&chunk[..count]);
        }
    }

    pub(crate) fn add(&mut self, piece: &[u8]) {
        self.0.extend(piece);
        self.0.drain(..self.0.len().saturating_sub(TAIL));
    }

    pub(crate) fn text(&self) -> String {
        let bytes: Vec<u8> = self.0.iter().copied().collect();
        String::from_utf8_lossy(&bytes).into_owned()
    }
}
