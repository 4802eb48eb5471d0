//! Text from outside in messages.

use std::borrow::Cow;

/// Returns whether a character can be shown: it is neither a control character, which could take over a terminal, nor a
/// bidirectional mark, which could make a text look like another one. Tabs and line feeds can be shown.
fn is_printable(letter: char) -> bool {
    match letter {
        '\n' | '\t' => true,
        '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}' => {
            false
        }
        letter => !letter.is_control(),
    }
}

/// Returns the text without control characters and bidirectional marks. Everything that a person reads and that contains
/// text from outside passes through this function: terminal, Markdown, JUnit and plots.
pub fn printable(text: &str) -> Cow<'_, str> {
    match text.chars().all(is_printable) {
        true => Cow::Borrowed(text),
        false => Cow::Owned(text.chars().filter(|letter| is_printable(*letter)).collect()),
    }
}

/// Returns the text on one line: every run of white space becomes a space. The rest is [`printable`].
pub fn one_line(text: &str) -> String {
    let is_kept = |letter: &char| letter.is_whitespace() || is_printable(*letter);
    let text: String = text.chars().filter(is_kept).collect();
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn white_space_is_collapsed_and_control_characters_are_removed() {
        let table = [
            ("", ""),
            ("plain  text", "plain text"),
            (" over\r\n\t loaded \n", "over loaded"),
            ("\u{1b}[31mred\u{1b}]0;title\u{7} \u{0}x\u{85}y", "[31mred]0;title x y"),
            ("é\u{2028}漢", "é 漢"),
            ("exe\u{202e}gpj.\u{2066}a\u{200f}", "exegpj.a"),
        ];
        for (text, expected) in table {
            assert_eq!(one_line(text), expected, "{text:?}");
        }
    }

    #[test]
    fn printable_text_has_no_control_characters_and_bidirectional_marks() {
        let text = "I \u{1b}[31mpick\u{1b}]0;title\u{7} it\n\tand\r\u{9b}2J \u{202e}é\u{2069} 漢";
        assert_eq!(printable(text), "I [31mpick]0;title it\n\tand2J é 漢");
        assert!(matches!(printable("plain\n\ttext"), Cow::Borrowed(_)));
    }
}
