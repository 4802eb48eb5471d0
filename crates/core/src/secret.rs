//! Redaction of secrets in stored and displayed texts.

/// Removes the secrets of this process from texts.
///
/// Providers echo keys in error messages and programs print their environment, so every external text
/// is redacted before it is stored or displayed.
#[derive(Clone, Default)]
pub struct Redactor {
    secrets: Vec<String>,
}

/// Minimum length of a secret in bytes. Shorter values are not secrets, and their redaction would garble ordinary
/// text.
const MIN_SECRET_LEN: usize = 8;

/// Replacement for a secret.
const REPLACEMENT: &str = "[redacted]";

impl Redactor {
    /// Adds a secret; values that are too short are ignored.
    pub fn add(&mut self, secret: &str) {
        let secret = secret.trim();
        self.add_form(secret.to_owned());
        // JSON escapes some characters.
        self.add_form(serde_json::Value::from(secret).to_string().trim_matches('"').to_owned());
    }

    fn add_form(&mut self, secret: String) {
        if secret.len() >= MIN_SECRET_LEN && !self.secrets.contains(&secret) {
            self.secrets.push(secret);
            // A secret that contains another one must be replaced first, or its remainder would stay.
            self.secrets.sort_by_key(|known| std::cmp::Reverse(known.len()));
        }
    }

    /// Whether there are no secrets.
    pub fn is_empty(&self) -> bool {
        self.secrets.is_empty()
    }

    /// Whether the text contains a secret.
    pub fn finds_in(&self, text: &str) -> bool {
        self.secrets.iter().any(|secret| text.contains(identifying_prefix(secret)))
    }

    /// Replaces all secrets in the text.
    pub fn scrub(&self, text: String) -> String {
        self.secrets.iter().fold(text, |text, secret| {
            if text.contains(identifying_prefix(secret)) { redact(&text, secret) } else { text }
        })
    }
}

impl Redactor {
    /// Returns a redactor for a text that arrives in pieces.
    pub fn pieces(&self) -> PieceRedactor {
        PieceRedactor { redactor: self.clone(), pending: String::new() }
    }

    /// Returns the start of the suffix that may be the beginning of a secret.
    fn pending_start(&self, text: &str) -> usize {
        let mut from = 0;
        while let Some(letter) = text[from..].chars().next() {
            let rest = &text[from..];
            // Longer secrets come first.
            match self.secrets.iter().find(|secret| rest.starts_with(secret.as_str())) {
                Some(whole) => from += whole.len(),
                None if self.secrets.iter().any(|secret| secret.starts_with(rest)) => return from,
                None => from += letter.len_utf8(),
            }
        }
        text.len()
    }
}

/// Removes secrets from a text that arrives in pieces, including secrets split between pieces.
#[derive(Debug)]
pub struct PieceRedactor {
    redactor: Redactor,
    /// Suffix that may be the beginning of a secret.
    pending: String,
}

impl PieceRedactor {
    /// Adds a piece and returns the text that is safe to emit.
    pub fn push(&mut self, piece: &str) -> String {
        self.pending.push_str(piece);
        let rest = self.pending.split_off(self.redactor.pending_start(&self.pending));
        self.redactor.scrub(std::mem::replace(&mut self.pending, rest))
    }

    /// Returns the remaining text after the last piece.
    pub fn finish(self) -> String {
        self.redactor.scrub(self.pending)
    }
}

/// Returns the prefix by which a secret is detected: texts are truncated for display, and a partial key must be
/// redacted too.
fn identifying_prefix(secret: &str) -> &str {
    const PREFIX_LEN: usize = 12;
    // The prefix of a short secret could be one that all keys of a provider share.
    if secret.len() < 2 * PREFIX_LEN { secret } else { secret.get(..PREFIX_LEN).unwrap_or(secret) }
}

/// Replaces the secret, or as much of it as the text contains.
fn redact(text: &str, secret: &str) -> String {
    let mut clean = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(start) = rest.find(identifying_prefix(secret)) {
        let same =
            rest[start..].chars().zip(secret.chars()).take_while(|(one, other)| one == other);
        let length: usize = same.map(|(character, _)| character.len_utf8()).sum();
        clean.push_str(&rest[..start]);
        clean.push_str(REPLACEMENT);
        rest = &rest[start + length..];
    }
    clean.push_str(rest);
    clean
}

/// Shows the number of secrets, never their values.
impl std::fmt::Debug for Redactor {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Redactor({} secrets)", self.secrets.len())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn longer_secrets_are_replaced_first_and_short_ones_are_ignored() {
        let mut redactor = Redactor::default();
        for secret in ["sk-12345678", "sk-12345678-long", "short", " sk-12345678 "] {
            redactor.add(secret);
        }
        let text = "key sk-12345678-long, key sk-12345678, short".to_owned();
        assert_eq!(redactor.scrub(text), "key [redacted], key [redacted], short");
        assert_eq!(format!("{redactor:?}"), "Redactor(2 secrets)");
    }

    #[test]
    fn truncated_secrets_are_redacted() {
        let mut redactor = Redactor::default();
        redactor.add("sk-0123456789abcdefghijklmnop");
        let scrubbed = |text: &str| redactor.scrub(text.to_owned());
        assert_eq!(scrubbed("key sk-0123456789abcdef"), "key [redacted]");
        assert_eq!(scrubbed("sk-0123456789abcX sk-01234567 x"), "[redacted]X sk-01234567 x");
        assert!(redactor.finds_in("…sk-0123456789a"));
    }

    #[test]
    fn json_escaped_secrets_are_redacted() {
        let mut redactor = Redactor::default();
        redactor.add("quote\"and\\slash");
        let json = serde_json::json!({"said": "it is quote\"and\\slash"}).to_string();
        assert!(redactor.finds_in(&json));
        assert_eq!(redactor.scrub(json), r#"{"said":"it is [redacted]"}"#);
    }

    #[test]
    fn secrets_split_between_pieces_are_redacted() {
        let mut redactor = Redactor::default();
        redactor.add("sk-0123456789abcdefghijklmnop");
        redactor.add("pässwörter");
        let text = "key: sk-0123456789abcdefghijklmnop, pässwörter, sk-01 and pässw";
        let letters: Vec<char> = text.chars().collect();
        for size in 1..letters.len() {
            let mut pieces = redactor.pieces();
            let mut output = String::new();
            for piece in letters.chunks(size) {
                output.push_str(&pieces.push(&piece.iter().collect::<String>()));
            }
            output.push_str(&pieces.finish());
            assert_eq!(output, "key: [redacted], [redacted], sk-01 and pässw", "pieces of {size}");
        }
        // Text that cannot be a secret is emitted immediately.
        let mut pieces = redactor.pieces();
        assert_eq!(pieces.push("hello s"), "hello ");
        assert_eq!(pieces.push("ky"), "sky");
    }
}
