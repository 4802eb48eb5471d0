//! Keys that seed the random generators of a request.
//!
//! The same conversation reaches the engine in three forms: directly, and through two wire formats
//! whose adapters merge or split messages differently. The key therefore covers only what all three
//! have in common: roles and texts in order, system messages first.

use bakeoff_core::{Content, ImageSource, Message, Request};
use rand::SeedableRng;
use rand::rngs::ChaCha8Rng;

/// Hash of a request or an event, from which its random numbers are drawn.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct SeedKey([u8; 32]);

impl SeedKey {
    /// Returns the key of a request in a trial; `model` is the name without the prefix `sim/`.
    pub(crate) fn new(
        seed: u64,
        model: &str,
        request: &Request,
        trial: u32,
        ordinal: u32,
    ) -> SeedKey {
        let mut hash = blake3::Hasher::new();
        hash.update(&seed.to_le_bytes());
        hash.update(&trial.to_le_bytes());
        hash.update(&ordinal.to_le_bytes());
        hash.update(model.as_bytes());
        let is_system = |message: &&Message| matches!(message, Message::System { .. });
        let mut last = None;
        for message in request.messages.iter().filter(is_system) {
            hash_message(&mut hash, &mut last, message);
        }
        for message in request.messages.iter().filter(|message| !is_system(message)) {
            hash_message(&mut hash, &mut last, message);
        }
        SeedKey(*hash.finalize().as_bytes())
    }

    /// Returns the key of the `number`th event of an engine with this seed.
    pub(crate) fn event(seed: u64, number: u64) -> SeedKey {
        let mut hash = blake3::Hasher::new();
        hash.update(&seed.to_le_bytes());
        hash.update(&number.to_le_bytes());
        SeedKey(*hash.finalize().as_bytes())
    }

    /// Returns the generator for one purpose. Generators of different purposes are independent.
    pub(crate) fn rng(&self, purpose: &str) -> ChaCha8Rng {
        ChaCha8Rng::from_seed(*blake3::keyed_hash(&self.0, purpose.as_bytes()).as_bytes())
    }

    /// Returns the first 12 bytes as hexadecimal digits, for ids.
    pub(crate) fn hex(&self) -> String {
        self.0[..12].iter().map(|byte| format!("{byte:02x}")).collect()
    }

    /// Returns the first 8 bytes as a number, for hash maps.
    pub(crate) fn short(&self) -> u64 {
        let [a, b, c, d, e, f, g, h, ..] = self.0;
        u64::from_le_bytes([a, b, c, d, e, f, g, h])
    }
}

/// Hashes the texts, images and files of a message. Consecutive texts of one role are concatenated; 0xff, which occurs
/// in no UTF-8 text, marks a change of role.
fn hash_message(hash: &mut blake3::Hasher, last: &mut Option<u8>, message: &Message) {
    let role = match message {
        Message::System { .. } => b's',
        Message::User { .. } => b'u',
        Message::Assistant { .. } => b'a',
        Message::ToolResult { .. } => b't',
    };
    for part in message.content() {
        let text = match part {
            Content::Text { text } => text,
            Content::Image { source: ImageSource::Url { url: data } }
            | Content::Image { source: ImageSource::Base64 { data, .. } }
            | Content::File { data, .. } => {
                // Ends the texts before it.
                *last = None;
                hash.update(&[0xff, b'm']).update(data.as_bytes());
                continue;
            }
            _ => continue,
        };
        if text.is_empty() {
            continue;
        }
        if *last != Some(role) {
            hash.update(&[0xff, role]);
            *last = Some(role);
        }
        hash.update(text.as_bytes());
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rand::RngExt;

    fn key(messages: Vec<Message>, trial: u32, ordinal: u32) -> SeedKey {
        SeedKey::new(1, "m", &Request { messages, ..Request::default() }, trial, ordinal)
    }

    #[test]
    fn key_depends_on_every_part() {
        let hello = || vec![Message::user("hello")];
        let base = key(hello(), 1, 1);
        assert_eq!(base, key(hello(), 1, 1));
        assert_ne!(base, key(hello(), 2, 1));
        assert_ne!(base, key(hello(), 1, 2));
        assert_ne!(base, key(vec![Message::user("hello!")], 1, 1));
        assert_ne!(base, key(vec![Message::assistant("hello")], 1, 1));
        let request = Request { messages: hello(), ..Request::default() };
        assert_ne!(base, SeedKey::new(2, "m", &request, 1, 1));
        assert_ne!(base, SeedKey::new(1, "n", &request, 1, 1));
    }

    #[test]
    fn merged_messages_and_moved_system_messages_keep_the_key() {
        let separate = vec![Message::user("a"), Message::system("s"), Message::user("b")];
        let merged = vec![
            Message::system("s"),
            Message::User { content: vec![Content::text("a"), Content::text("b")] },
        ];
        let joined = vec![Message::system("s"), Message::user("ab"), Message::user("")];
        assert_eq!(key(separate, 0, 0), key(merged.clone(), 0, 0));
        assert_eq!(key(joined, 0, 0), key(merged, 0, 0));
    }

    #[test]
    fn generators_of_two_purposes_are_independent() {
        let key = SeedKey::event(1, 1);
        let draw = |purpose: &str| key.rng(purpose).random::<u64>();
        assert_eq!(draw("a"), draw("a"));
        assert_ne!(draw("a"), draw("b"));
    }
}
