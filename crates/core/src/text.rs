//! Text from outside in messages.

/// Returns the text on one line: every run of white space becomes a space, and control characters, which could take
/// over a terminal, are removed.
pub fn one_line(text: &str) -> String {
    let is_printable = |letter: &char| letter.is_whitespace() || !letter.is_control();
    let text: String = text.chars().filter(is_printable).collect();
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
        ];
        for (text, expected) in table {
            assert_eq!(one_line(text), expected, "{text:?}");
        }
    }
}
