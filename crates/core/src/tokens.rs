//! Estimates of token counts, for budgets and pacing before a provider has counted.

/// Units per token. Sizes in units are exact sums, so parts of a text can be estimated separately.
pub const UNITS_PER_TOKEN: u64 = 4;

/// Estimates the tokens of a text by the script of its characters.
///
/// ```
/// use bakeoff_core::estimate_tokens;
///
/// assert_eq!(estimate_tokens("four letters per token"), 6);
/// assert_eq!(estimate_tokens("東京都"), 3);
/// ```
pub fn estimate_tokens(text: &str) -> u64 {
    token_units(text).div_ceil(UNITS_PER_TOKEN)
}

/// Returns the estimated size of a text in units of a quarter of a token.
pub fn token_units(text: &str) -> u64 {
    if text.is_ascii() {
        return text.len() as u64;
    }
    text.chars().map(character_units).sum()
}

/// Returns the estimated size of a character in units of a quarter of a token.
///
/// English has about four characters per token in all common tokenizers. Other alphabets have about two, scripts with
/// thousands of characters or with combining vowels about one, and emoji are split into bytes. Tokenizers differ by a
/// factor of up to two for the latter; the estimate is near the upper end, because a prompt that is too long is
/// rejected.
pub fn character_units(character: char) -> u64 {
    match u32::from(character) {
        // Latin with its diacritics, and punctuation.
        0..=0x036f | 0x1e00..=0x1eff | 0x2000..=0x206f => 1,
        // Greek, Cyrillic, Armenian, Hebrew, Arabic.
        0x0370..=0x08ff => 2,
        // Scripts of India and South East Asia, Hangul, Kana, Han, full-width forms.
        0x0900..=0x1fff | 0x2e80..=0xffff | 0x2_0000..=0x3_ffff => 4,
        // Symbols.
        0x2070..=0x2e7f => 4,
        // Emoji and historic scripts.
        _ => 8,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn estimate_depends_on_the_script() {
        for (text, expected) in [
            ("", 0),
            ("a", 1),
            ("The quick brown fox jumps over the lazy dog.", 11),
            ("Élève à l’école", 4),
            ("Быстрая коричневая лиса", 11),
            ("人工知能は世界を変える", 11),
            ("인공지능", 4),
            ("สวัสดี", 6),
            ("🎉🎉", 4),
        ] {
            assert_eq!(estimate_tokens(text), expected, "{text}");
        }
    }

    #[test]
    fn units_of_parts_add_up() {
        let text = "a漢б🎉 é";
        let parts: u64 = text.chars().map(|letter| token_units(&letter.to_string())).sum();
        assert_eq!(token_units(text), parts);
    }
}
