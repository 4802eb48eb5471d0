//! Syntax of `.env` files.
//!
//! A line is `NAME=value`, optionally after `export`, or a comment that starts with `#`. Values without quotation
//! marks end at ` #`. In single quotation marks, all characters stand for themselves; in double quotation marks, a
//! backslash escapes. Both may contain line breaks. Variables within values are not expanded.

use std::collections::BTreeMap;

/// Malformed line.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct SyntaxError {
    /// Byte position in the text.
    pub(super) at: usize,
    pub(super) message: &'static str,
    pub(super) hint: &'static str,
}

const LINE_HINT: &str = "write NAME=value";

/// Returns the variables; the last one of a name counts.
pub(super) fn parse(text: &str) -> Result<BTreeMap<String, String>, SyntaxError> {
    let mut variables = BTreeMap::new();
    let mut rest = Rest { text, at: 0 };
    rest.skip("\u{feff}");
    loop {
        rest.skip_while(char::is_whitespace);
        if rest.remaining().is_empty() {
            return Ok(variables);
        }
        if !rest.skip_comment() {
            let (name, value) = rest.variable()?;
            variables.insert(name.to_owned(), value);
        }
    }
}

/// The part of a text that has not been parsed.
struct Rest<'t> {
    text: &'t str,
    at: usize,
}

impl<'t> Rest<'t> {
    fn remaining(&self) -> &'t str {
        &self.text[self.at..]
    }

    fn skip(&mut self, prefix: &str) -> bool {
        let is_next = self.remaining().starts_with(prefix);
        self.at += if is_next { prefix.len() } else { 0 };
        is_next
    }

    fn skip_while(&mut self, matches: impl Fn(char) -> bool) {
        let remaining = self.remaining();
        self.at += remaining.find(|c| !matches(c)).unwrap_or(remaining.len());
    }

    fn skip_blanks(&mut self) {
        self.skip_while(|c| c == ' ' || c == '\t');
    }

    fn skip_comment(&mut self) -> bool {
        let is_comment = self.remaining().starts_with('#');
        if is_comment {
            self.skip_while(|c| c != '\n');
        }
        is_comment
    }

    fn error(&self, message: &'static str, hint: &'static str) -> SyntaxError {
        SyntaxError { at: self.at, message, hint }
    }

    fn variable(&mut self) -> Result<(&'t str, String), SyntaxError> {
        let exported = self.remaining().strip_prefix("export");
        if exported.is_some_and(|rest| rest.starts_with([' ', '\t'])) {
            self.skip("export");
            self.skip_blanks();
        }
        let line = Rest { ..*self };
        self.skip_while(|c| c != '=' && !c.is_whitespace());
        let name = &self.text[line.at..self.at];
        self.skip_blanks();
        if !self.skip("=") {
            return Err(line.error("no `=` after the name", LINE_HINT));
        }
        let is_word = name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_');
        if !is_word || !name.starts_with(|c: char| !c.is_ascii_digit()) {
            let hint = "use letters, digits and underscores, without a digit at the beginning";
            return Err(line.error("invalid name of a variable", hint));
        }
        self.skip_blanks();
        let value = Rest { ..*self };
        let text = self.value()?;
        if text.contains('\0') {
            return Err(value.error("the value contains a null character", "remove it"));
        }
        Ok((name, text))
    }

    fn value(&mut self) -> Result<String, SyntaxError> {
        let quote = self.remaining().chars().next().filter(|c| matches!(c, '"' | '\''));
        let Some(quote) = quote else { return Ok(self.plain_value()) };
        let start = Rest { ..*self };
        self.at += quote.len_utf8();
        let mut value = String::new();
        let mut characters = self.remaining().char_indices();
        loop {
            let Some((offset, character)) = characters.next() else {
                return Err(start.error("quotation mark is not closed", "close it"));
            };
            match character {
                // At the end of the text, the next round reports the missing quotation mark.
                '\\' if quote == '"' => {
                    value.extend(characters.next().map(|(_, escaped)| unescape(escaped)));
                }
                _ if character == quote => {
                    self.at += offset + quote.len_utf8();
                    break;
                }
                _ => value.push(character),
            }
        }
        self.skip_blanks();
        let is_end = self.skip_comment()
            || matches!(self.remaining().chars().next(), None | Some('\n' | '\r'));
        match is_end {
            true => Ok(value),
            false => Err(self.error(
                "text after the closing quotation mark",
                "put the whole value in quotation marks, and a backslash before `\"` within it",
            )),
        }
    }

    fn plain_value(&mut self) -> String {
        let remaining = self.remaining();
        let line = &remaining[..remaining.find('\n').unwrap_or(remaining.len())];
        self.at += line.len();
        let is_comment = |(at, _): &(usize, &str)| *at == 0 || line[..*at].ends_with([' ', '\t']);
        let end = line.match_indices('#').find(is_comment).map_or(line.len(), |(at, _)| at);
        line[..end].trim().to_owned()
    }
}

/// Returns what an escape in double quotation marks stands for; unknown ones keep their backslash.
fn unescape(escaped: char) -> String {
    match escaped {
        'n' => "\n".to_owned(),
        'r' => "\r".to_owned(),
        't' => "\t".to_owned(),
        '\\' | '"' | '$' | '`' => escaped.to_string(),
        // A continued line.
        '\n' => String::new(),
        other => format!("\\{other}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn common_syntax_is_parsed() {
        let table = [
            ("A=1", "1"),
            ("A=", ""),
            ("A= # none", ""),
            ("  A = b c \r\n", "b c"),
            ("export A=b", "b"),
            ("export\tA='b'", "b"),
            ("# A=0\n\nA=b # comment\n", "b"),
            ("A=b#c", "b#c"),
            ("A=\"b # c\" # comment", "b # c"),
            ("A='b \\n $C \"d\"'", "b \\n $C \"d\""),
            (r#"A="b\n\t\"c\" \\ \$ \d""#, "b\n\t\"c\" \\ $ \\d"),
            ("A=\"b\nc\"\r\n", "b\nc"),
            ("A=\"b\\\nc\"", "bc"),
            ("A=it's", "it's"),
            ("A=ä=ö", "ä=ö"),
            ("\u{feff}A=b", "b"),
            ("A=1\nA=2", "2"),
            ("exported=1\nA=2", "2"),
        ];
        for (text, value) in table {
            let variables = parse(text).unwrap();
            assert_eq!(variables.get("A").map(String::as_str), Some(value), "{text:?}");
        }
        assert!(parse("\n# comment\n").unwrap().is_empty());
    }

    #[test]
    fn malformed_lines_are_errors_with_their_position() {
        let table = [
            ("A=1\nkey", 4, "no `=` after the name"),
            ("export A", 7, "no `=` after the name"),
            ("my-key=1", 0, "invalid name of a variable"),
            ("A: 1", 0, "no `=` after the name"),
            ("=1", 0, "invalid name of a variable"),
            ("1A=1", 0, "invalid name of a variable"),
            ("A=\"b", 2, "quotation mark is not closed"),
            ("A=\"b\\\"", 2, "quotation mark is not closed"),
            ("A=\"b\\", 2, "quotation mark is not closed"),
            ("A='b' c", 6, "text after the closing quotation mark"),
            ("A=b\0", 2, "the value contains a null character"),
        ];
        for (text, at, message) in table {
            let error = parse(text).unwrap_err();
            assert_eq!((error.at, error.message), (at, message), "{text:?}");
        }
    }
}
