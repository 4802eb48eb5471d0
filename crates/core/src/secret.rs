//! Keeping keys out of everything that is written or shown.

/// Knows the secrets of this process and takes them out of any text.
///
/// Providers echo keys in error messages and programs print their environment, so every text that
/// came from outside passes through here before it is stored or shown.
#[derive(Clone, Default)]
pub struct Redactor {
    secrets: Vec<String>,
}

/// Shorter values are no secrets, and replacing them would garble ordinary text.
const SHORTEST_SECRET: usize = 8;

/// What stands in a secret's place.
const MARK: &str = "[redacted]";

impl Redactor {
    /// Adds a secret; values too short to be one are ignored.
    pub fn add(&mut self, secret: &str) {
        let secret = secret.trim();
        self.add_form(secret.to_owned());
        // Inside JSON some characters are written in another way.
        self.add_form(serde_json::Value::from(secret).to_string().trim_matches('"').to_owned());
    }

    fn add_form(&mut self, secret: String) {
        if secret.len() >= SHORTEST_SECRET && !self.secrets.contains(&secret) {
            self.secrets.push(secret);
            // A secret that contains another must go first, or its rest would stay.
            self.secrets.sort_by_key(|known| std::cmp::Reverse(known.len()));
        }
    }

    /// Whether there is anything to take out.
    pub fn is_empty(&self) -> bool {
        self.secrets.is_empty()
    }

    /// Whether the text holds a secret.
    pub fn finds_in(&self, text: &str) -> bool {
        self.secrets.iter().any(|secret| text.contains(telling(secret)))
    }

    /// The text without any secret.
    pub fn scrub(&self, text: String) -> String {
        self.secrets.iter().fold(text, |text, secret| {
            if text.contains(telling(secret)) { without(&text, secret) } else { text }
        })
    }
}

impl Redactor {
    /// Takes secrets out of a text that comes in pieces.
    pub fn pieces(&self) -> PieceRedactor {
        PieceRedactor { redactor: self.clone(), waiting: String::new() }
    }

    /// Where the end of a text begins that may be the beginning of a secret.
    fn undecided(&self, text: &str) -> usize {
        let mut from = 0;
        while let Some(letter) = text[from..].chars().next() {
            let rest = &text[from..];
            // The longer ones come first.
            match self.secrets.iter().find(|secret| rest.starts_with(secret.as_str())) {
                Some(whole) => from += whole.len(),
                None if self.secrets.iter().any(|secret| secret.starts_with(rest)) => return from,
                None => from += letter.len_utf8(),
            }
        }
        text.len()
    }
}

/// Takes secrets out of a text that comes in pieces, however they are torn apart.
#[derive(Debug)]
pub struct PieceRedactor {
    redactor: Redactor,
    /// May be the beginning of a secret.
    waiting: String,
}

impl PieceRedactor {
    /// Takes the next piece; gives what can be said by now.
    pub fn push(&mut self, piece: &str) -> String {
        self.waiting.push_str(piece);
        let rest = self.waiting.split_off(self.redactor.undecided(&self.waiting));
        self.redactor.scrub(std::mem::replace(&mut self.waiting, rest))
    }

    /// What was left, when nothing more comes.
    pub fn finish(self) -> String {
        self.redactor.scrub(self.waiting)
    }
}

/// The part of a secret that gives it away: texts are cut for display, and half a key is bad enough.
fn telling(secret: &str) -> &str {
    const TELLING: usize = 12;
    // Of a short secret this would be most of it, or a prefix that all keys share.
    if secret.len() < 2 * TELLING { secret } else { secret.get(..TELLING).unwrap_or(secret) }
}

/// The text without as much of the secret as it holds.
fn without(text: &str, secret: &str) -> String {
    let mut clean = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(start) = rest.find(telling(secret)) {
        let same =
            rest[start..].chars().zip(secret.chars()).take_while(|(one, other)| one == other);
        let length: usize = same.map(|(character, _)| character.len_utf8()).sum();
        clean.push_str(&rest[..start]);
        clean.push_str(MARK);
        rest = &rest[start + length..];
    }
    clean.push_str(rest);
    clean
}

/// Says how many, never which.
impl std::fmt::Debug for Redactor {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Redactor({} secrets)", self.secrets.len())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn longer_secrets_go_first_and_short_ones_are_ignored() {
        let mut redactor = Redactor::default();
        for secret in ["sk-12345678", "sk-12345678-long", "short", " sk-12345678 "] {
            redactor.add(secret);
        }
        let text = "key sk-12345678-long, key sk-12345678, short".to_owned();
        assert_eq!(redactor.scrub(text), "key [redacted], key [redacted], short");
        assert_eq!(format!("{redactor:?}"), "Redactor(2 secrets)");
    }

    #[test]
    fn a_secret_that_was_cut_is_taken_out_too() {
        let mut redactor = Redactor::default();
        redactor.add("sk-0123456789abcdefghijklmnop");
        let scrubbed = |text: &str| redactor.scrub(text.to_owned());
        assert_eq!(scrubbed("key sk-0123456789abcdef"), "key [redacted]");
        assert_eq!(scrubbed("sk-0123456789abcX sk-01234567 x"), "[redacted]X sk-01234567 x");
        assert!(redactor.finds_in("…sk-0123456789a"));
    }

    #[test]
    fn secrets_are_found_inside_json_too() {
        let mut redactor = Redactor::default();
        redactor.add("quote\"and\\slash");
        let json = serde_json::json!({"said": "it is quote\"and\\slash"}).to_string();
        assert!(redactor.finds_in(&json));
        assert_eq!(redactor.scrub(json), r#"{"said":"it is [redacted]"}"#);
    }

    #[test]
    fn a_secret_that_comes_in_pieces_is_taken_out() {
        let mut redactor = Redactor::default();
        redactor.add("sk-0123456789abcdefghijklmnop");
        redactor.add("pässwörter");
        let text = "key: sk-0123456789abcdefghijklmnop, pässwörter, sk-01 and pässw";
        let letters: Vec<char> = text.chars().collect();
        for size in 1..letters.len() {
            let mut pieces = redactor.pieces();
            let mut said = String::new();
            for piece in letters.chunks(size) {
                said.push_str(&pieces.push(&piece.iter().collect::<String>()));
            }
            said.push_str(&pieces.finish());
            assert_eq!(said, "key: [redacted], [redacted], sk-01 and pässw", "pieces of {size}");
        }
        // What cannot be a secret is said at once.
        let mut pieces = redactor.pieces();
        assert_eq!(pieces.push("hello s"), "hello ");
        assert_eq!(pieces.push("ky"), "sky");
    }
}
