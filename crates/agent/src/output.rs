//! Reading the outputs of programs with bounded memory.

use std::collections::VecDeque;
use tokio::io::{AsyncRead, AsyncReadExt};

/// Number of bytes that an [`OutputTail`] keeps.
const TAIL_BYTES: usize = 4096;

/// The first bytes of an output.
#[derive(Debug, Default)]
pub(crate) struct CapturedOutput {
    bytes: Vec<u8>,
    dropped: u64,
}

impl CapturedOutput {
    /// Reads until the end, keeps the first `max_bytes` bytes and counts the others, so that a full pipe never
    /// blocks the program. Passes all bytes to `on_bytes`. Keeps what has been read when the future is dropped.
    pub(crate) async fn read_from(
        &mut self,
        mut pipe: impl AsyncRead + Unpin,
        max_bytes: usize,
        mut on_bytes: impl FnMut(&[u8]),
    ) -> std::io::Result<()> {
        let mut chunk = vec![0; 16 * 1024];
        loop {
            let count = pipe.read(&mut chunk).await?;
            if count == 0 {
                return Ok(());
            }
            on_bytes(&chunk[..count]);
            let kept = count.min(max_bytes - self.bytes.len());
            self.bytes.extend_from_slice(&chunk[..kept]);
            self.dropped += (count - kept) as u64;
        }
    }

    /// Returns the text, with invalid UTF-8 replaced, and the number of dropped bytes.
    pub(crate) fn into_text(self) -> (String, u64) {
        let text = match String::from_utf8(self.bytes) {
            Ok(text) => text,
            Err(error) => String::from_utf8_lossy(error.as_bytes()).into_owned(),
        };
        (text, self.dropped)
    }
}

/// The last bytes of an output.
#[derive(Debug, Default)]
pub(crate) struct OutputTail(VecDeque<u8>);

impl OutputTail {
    /// Reads until the pipe is closed. Keeps what has been read when the future is dropped.
    pub(crate) async fn read_from(&mut self, pipe: &mut Option<impl AsyncRead + Unpin>) {
        let Some(pipe) = pipe else { return };
        let mut chunk = [0; 1024];
        while let Ok(count @ 1..) = pipe.read(&mut chunk).await {
            self.add(&chunk[..count]);
        }
    }

    pub(crate) fn add(&mut self, bytes: &[u8]) {
        self.0.extend(bytes);
        self.0.drain(..self.0.len().saturating_sub(TAIL_BYTES));
    }

    pub(crate) fn text(&self) -> String {
        let bytes: Vec<u8> = self.0.iter().copied().collect();
        String::from_utf8_lossy(&bytes).into_owned()
    }
}
