//! Streaming of the answer of a race with a single branch.

/// What to print of an answer that arrives in pieces. Every method returns the text to print next.
///
/// After a retry the model starts again: what it repeats is not printed twice, and a different answer starts on a
/// line of its own.
#[derive(Debug, Default)]
pub(super) struct AnswerStream {
    printed: String,
    /// Text of the current attempt, until it differs from what an earlier attempt printed.
    attempt: Option<String>,
    /// Set when pieces were lost; the rest is printed with the complete message.
    has_gap: bool,
}

impl AnswerStream {
    /// Adds a piece of the answer.
    pub(super) fn push(&mut self, piece: &str) -> String {
        if self.has_gap {
            return String::new();
        }
        let Some(attempt) = &mut self.attempt else {
            self.printed.push_str(piece);
            return piece.to_owned();
        };
        attempt.push_str(piece);
        if self.printed.starts_with(attempt.as_str()) {
            return String::new();
        }
        let text = std::mem::take(attempt);
        self.attempt = None;
        self.rest_of(&text)
    }

    /// Starts again: the model is called anew.
    pub(super) fn restart(&mut self) {
        self.attempt = Some(String::new());
    }

    /// Notes that pieces were lost.
    pub(super) fn skip(&mut self) {
        self.has_gap = true;
    }

    /// Adds the complete answer: returns what is missing of it, with the end of the line.
    pub(super) fn complete(&mut self, answer: &str) -> String {
        self.rest_of(answer) + "\n"
    }

    /// Ends the line of an answer that will not be completed.
    pub(super) fn abort(&mut self) -> String {
        let end = if self.printed.is_empty() { "" } else { "\n" };
        self.printed.clear();
        end.to_owned()
    }

    /// Returns the part of a text that is not printed yet.
    fn rest_of(&mut self, text: &str) -> String {
        let rest = match text.strip_prefix(self.printed.as_str()) {
            Some(rest) => rest.to_owned(),
            None => format!("\n{text}"),
        };
        text.clone_into(&mut self.printed);
        rest
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pieces_are_printed_as_they_arrive() {
        let mut stream = AnswerStream::default();
        assert_eq!(stream.push("one ") + &stream.push("two"), "one two");
        assert_eq!(stream.complete("one two"), "\n");
    }

    #[test]
    fn retry_repeats_nothing_and_starts_another_answer_on_its_own_line() {
        let mut stream = AnswerStream::default();
        stream.push("one two");
        stream.restart();
        assert_eq!(stream.push("one ") + &stream.push("two three"), " three");
        stream.restart();
        assert_eq!(stream.push("one ") + &stream.push("more"), "\none more");
        assert_eq!(stream.push(" time"), " time");
        assert_eq!(stream.complete("one more time"), "\n");
        let mut shorter = AnswerStream::default();
        shorter.push("one two");
        shorter.restart();
        assert_eq!(shorter.push("one") + &shorter.complete("one"), "\none\n");
    }

    #[test]
    fn lost_pieces_are_printed_with_the_complete_answer() {
        let mut stream = AnswerStream::default();
        stream.push("one ");
        stream.skip();
        assert_eq!(stream.push("three"), "");
        assert_eq!(stream.complete("one two three"), "two three\n");
    }

    #[test]
    fn answer_without_an_end_ends_its_line() {
        let mut stream = AnswerStream::default();
        assert_eq!(stream.abort(), "");
        stream.push("one");
        assert_eq!(stream.abort(), "\n");
    }
}
