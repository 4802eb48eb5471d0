//! Strings in double quotes, with their escapes.

/// Parses the string that starts with this quote. Returns it with its length in bytes; `None` if it does not
/// end.
pub(super) fn parse_string(quoted: &str) -> Option<(String, usize)> {
    let mut string = String::new();
    let mut characters = quoted.char_indices().skip(1);
    while let Some((offset, character)) = characters.next() {
        match character {
            '"' => return Some((string, offset + 1)),
            '\\' => match characters.next()? {
                (_, 'n') => string.push('\n'),
                (_, 't') => string.push('\t'),
                (_, 'r') => string.push('\r'),
                (_, 'b') => string.push('\u{8}'),
                (_, 'f') => string.push('\u{c}'),
                (at, 'u') => {
                    let (unit, used) = parse_unicode(&quoted[at + 1..]);
                    string.push(unit);
                    (0..used).for_each(|_| {
                        characters.next();
                    });
                }
                (_, other) => string.push(other),
            },
            other => string.push(other),
        }
    }
    None
}

/// Parses the digits of `\uXXXX`, with the second half of a surrogate pair if there is one. Returns the
/// character and the number of characters read. An unpaired surrogate becomes the replacement character.
fn parse_unicode(rest: &str) -> (char, usize) {
    let unit = |text: &str| {
        let hex = text.get(..4).filter(|hex| hex.bytes().all(|byte| byte.is_ascii_hexdigit()))?;
        u32::from_str_radix(hex, 16).ok()
    };
    let Some(first) = unit(rest) else { return (char::REPLACEMENT_CHARACTER, 0) };
    let second = rest.get(4..).and_then(|rest| rest.strip_prefix("\\u")).and_then(unit);
    match (first, second) {
        (0xd800..=0xdbff, Some(low @ 0xdc00..=0xdfff)) => {
            let code = 0x1_0000 + ((first - 0xd800) << 10) + (low - 0xdc00);
            (char::from_u32(code).unwrap_or(char::REPLACEMENT_CHARACTER), 10)
        }
        _ => (char::from_u32(first).unwrap_or(char::REPLACEMENT_CHARACTER), 4),
    }
}
