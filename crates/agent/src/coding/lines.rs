//! Pieces of a stream put together to lines.

/// Longer lines are left out.
const LONGEST: usize = 8 * 1024 * 1024;

/// A line, or that there was one.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Line<'l> {
    /// Without its end.
    Read(&'l [u8]),
    /// It was longer than anybody reads: so many bytes.
    Lost(u64),
}

#[derive(Debug, Default)]
pub(super) struct Lines {
    begun: Vec<u8>,
    /// Bytes of a line that is too long, so far; 0 of one that is not.
    lost: u64,
}

impl Lines {
    /// Takes the next piece and gives the lines that it ends.
    pub(super) fn push(&mut self, piece: &[u8], mut each: impl FnMut(Line<'_>)) {
        let mut parts = piece.split(|byte| *byte == b'\n');
        // There is always a first part; every other one begins after a newline.
        if let Some(first) = parts.next() {
            self.extend(first);
        }
        for part in parts {
            each(self.line());
            self.begun.clear();
            self.lost = 0;
            self.extend(part);
        }
    }

    /// Gives a last line that has no end.
    pub(super) fn finish(self, mut each: impl FnMut(Line<'_>)) {
        if self.lost > 0 || !self.begun.is_empty() {
            each(self.line());
        }
    }

    fn line(&self) -> Line<'_> {
        if self.lost > 0 { Line::Lost(self.lost) } else { Line::Read(&self.begun) }
    }

    fn extend(&mut self, part: &[u8]) {
        if self.lost > 0 || self.begun.len() + part.len() > LONGEST {
            self.lost += (self.begun.len() + part.len()) as u64;
            self.begun = Vec::new();
        } else {
            self.begun.extend_from_slice(part);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(line: Line<'_>) -> String {
        match line {
            Line::Read(bytes) => String::from_utf8_lossy(bytes).into_owned(),
            Line::Lost(bytes) => format!("lost {bytes}"),
        }
    }

    #[test]
    fn lines_are_the_same_however_they_are_cut() {
        let text = b"one\n\ntwo\nthree";
        for size in 1..=text.len() {
            let mut lines = Lines::default();
            let mut found = Vec::new();
            for piece in text.chunks(size) {
                lines.push(piece, |line| found.push(read(line)));
            }
            lines.finish(|line| found.push(read(line)));
            assert_eq!(found, ["one", "", "two", "three"], "{size}");
        }
    }

    #[test]
    fn a_line_without_end_takes_no_room() {
        let mut lines = Lines::default();
        let mut found = Vec::new();
        for _ in 0..9 {
            lines.push(&vec![b'x'; 1 << 20], |line| found.push(read(line)));
        }
        assert_eq!(lines.begun.capacity(), 0);
        lines.push(b"x\nshort\n", |line| found.push(read(line)));
        assert_eq!(found, [format!("lost {}", (9 << 20) + 1), "short".to_owned()]);
    }
}
