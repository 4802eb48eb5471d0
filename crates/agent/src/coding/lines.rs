//! Pieces of a stream put together to lines.

/// Longer lines are left out.
const LONGEST: usize = 8 * 1024 * 1024;

#[derive(Debug, Default)]
pub(super) struct Lines {
    begun: Vec<u8>,
    is_too_long: bool,
}

impl Lines {
    /// Takes the next piece and gives the lines that it ends.
    pub(super) fn push(&mut self, piece: &[u8], mut each: impl FnMut(&[u8])) {
        let mut parts = piece.split(|byte| *byte == b'\n');
        // There is always a first part; every other one begins after a newline.
        if let Some(first) = parts.next() {
            self.extend(first);
        }
        for part in parts {
            if !self.is_too_long {
                each(&self.begun);
            }
            self.begun.clear();
            self.is_too_long = false;
            self.extend(part);
        }
    }

    /// Gives a last line that has no end.
    pub(super) fn finish(self, mut each: impl FnMut(&[u8])) {
        if !self.is_too_long && !self.begun.is_empty() {
            each(&self.begun);
        }
    }

    fn extend(&mut self, part: &[u8]) {
        self.is_too_long |= self.begun.len() + part.len() > LONGEST;
        if self.is_too_long {
            self.begun = Vec::new();
        } else {
            self.begun.extend_from_slice(part);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_the_same_however_they_are_cut() {
        let text = b"one\n\ntwo\nthree";
        for size in 1..=text.len() {
            let mut lines = Lines::default();
            let mut found = Vec::new();
            for piece in text.chunks(size) {
                lines.push(piece, |line| found.push(line.to_vec()));
            }
            lines.finish(|line| found.push(line.to_vec()));
            assert_eq!(found, [&b"one"[..], b"", b"two", b"three"], "{size}");
        }
    }

    #[test]
    fn a_line_without_end_takes_no_room() {
        let mut lines = Lines::default();
        let mut found = Vec::new();
        for _ in 0..9 {
            lines.push(&vec![b'x'; 1 << 20], |line| found.push(line.to_vec()));
        }
        assert_eq!(lines.begun.capacity(), 0);
        lines.push(b"x\nshort\n", |line| found.push(line.to_vec()));
        assert_eq!(found, [b"short"]);
    }
}
