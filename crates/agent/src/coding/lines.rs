//! Splitting a byte stream into lines.

/// Maximum length of a line; longer ones are dropped.
const MAX_LINE_BYTES: usize = 8 * 1024 * 1024;

/// One line of a stream.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum StreamLine<'l> {
    /// The line without its newline.
    Complete(&'l [u8]),
    /// The line was too long; its length in bytes.
    Dropped(u64),
}

/// Line splitter with bounded memory.
#[derive(Debug, Default)]
pub(super) struct LineSplitter {
    partial: Vec<u8>,
    /// Length so far of a line that is too long; 0 otherwise.
    dropped: u64,
}

impl LineSplitter {
    /// Adds bytes and passes the lines that they complete to `on_line`.
    pub(super) fn push(&mut self, bytes: &[u8], mut on_line: impl FnMut(StreamLine<'_>)) {
        let mut parts = bytes.split(|byte| *byte == b'\n');
        // The first part continues the current line; each other part follows a newline.
        if let Some(first) = parts.next() {
            self.extend(first);
        }
        for part in parts {
            on_line(self.line());
            self.partial.clear();
            self.dropped = 0;
            self.extend(part);
        }
    }

    /// Passes a last line without newline to `on_line`.
    pub(super) fn finish(self, mut on_line: impl FnMut(StreamLine<'_>)) {
        if self.dropped > 0 || !self.partial.is_empty() {
            on_line(self.line());
        }
    }

    fn line(&self) -> StreamLine<'_> {
        match self.dropped {
            0 => StreamLine::Complete(&self.partial),
            bytes => StreamLine::Dropped(bytes),
        }
    }

    fn extend(&mut self, part: &[u8]) {
        if self.dropped > 0 || self.partial.len() + part.len() > MAX_LINE_BYTES {
            self.dropped += (self.partial.len() + part.len()) as u64;
            self.partial = Vec::new();
        } else {
            self.partial.extend_from_slice(part);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn show(line: StreamLine<'_>) -> String {
        match line {
            StreamLine::Complete(bytes) => String::from_utf8_lossy(bytes).into_owned(),
            StreamLine::Dropped(bytes) => format!("dropped {bytes}"),
        }
    }

    #[test]
    fn lines_do_not_depend_on_chunk_sizes() {
        let text = b"one\n\ntwo\nthree";
        for size in 1..=text.len() {
            let mut lines = LineSplitter::default();
            let mut found = Vec::new();
            for chunk in text.chunks(size) {
                lines.push(chunk, |line| found.push(show(line)));
            }
            lines.finish(|line| found.push(show(line)));
            assert_eq!(found, ["one", "", "two", "three"], "{size}");
        }
    }

    #[test]
    fn overlong_line_is_dropped_and_uses_no_memory() {
        let mut lines = LineSplitter::default();
        let mut found = Vec::new();
        for _ in 0..9 {
            lines.push(&vec![b'x'; 1 << 20], |line| found.push(show(line)));
        }
        assert_eq!(lines.partial.capacity(), 0);
        lines.push(b"x\nshort\n", |line| found.push(show(line)));
        assert_eq!(found, [format!("dropped {}", (9 << 20) + 1), "short".to_owned()]);
    }
}
