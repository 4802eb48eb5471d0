//! Reading what a program says without trusting it to be short.

use tokio::io::{AsyncRead, AsyncReadExt};

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
