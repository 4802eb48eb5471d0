//! The name of a request, from which everything random about it is drawn.
//!
//! The same conversation reaches the engine in three shapes: as it is, and through two wire
//! formats whose adapters merge or split messages differently. So only what survives all three
//! is part of the name: who said which text, in which order, with the system's words first.

use bakeoff_core::{Content, Message, Request};
use rand::SeedableRng;
use rand::rngs::ChaCha8Rng;

/// A request's name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Key([u8; 32]);

impl Key {
    /// The name of this request in this trial; `model` is without the prefix `sim/`.
    pub(crate) fn new(seed: u64, model: &str, request: &Request, trial: u32, ordinal: u32) -> Key {
        let mut hash = blake3::Hasher::new();
        hash.update(&seed.to_le_bytes());
        hash.update(&trial.to_le_bytes());
        hash.update(&ordinal.to_le_bytes());
        hash.update(model.as_bytes());
        let is_system = |message: &&Message| matches!(message, Message::System { .. });
        let mut last = None;
        for message in request.messages.iter().filter(is_system) {
            speak(&mut hash, &mut last, message);
        }
        for message in request.messages.iter().filter(|message| !is_system(message)) {
            speak(&mut hash, &mut last, message);
        }
        Key(*hash.finalize().as_bytes())
    }

    /// The name of the `number`th thing that happens in an engine with this seed.
    pub(crate) fn event(seed: u64, number: u64) -> Key {
        let mut hash = blake3::Hasher::new();
        hash.update(&seed.to_le_bytes());
        hash.update(&number.to_le_bytes());
        Key(*hash.finalize().as_bytes())
    }

    /// Random numbers for one purpose; those of two purposes have nothing to do with each other.
    pub(crate) fn rng(&self, purpose: &str) -> ChaCha8Rng {
        ChaCha8Rng::from_seed(*blake3::keyed_hash(&self.0, purpose.as_bytes()).as_bytes())
    }

    /// The first bytes as hexadecimal digits, for ids.
    pub(crate) fn hex(&self) -> String {
        self.0[..12].iter().map(|byte| format!("{byte:02x}")).collect()
    }

    /// The first bytes as a number, for tables.
    pub(crate) fn short(&self) -> u64 {
        let [a, b, c, d, e, f, g, h, ..] = self.0;
        u64::from_le_bytes([a, b, c, d, e, f, g, h])
    }
}

/// Adds what one message says. Texts of one speaker in a row run together: 0xff, which no UTF-8
/// text holds, marks a change of speaker.
fn speak(hash: &mut blake3::Hasher, last: &mut Option<u8>, message: &Message) {
    let role = match message {
        Message::System { .. } => b's',
        Message::User { .. } => b'u',
        Message::Assistant { .. } => b'a',
        Message::ToolResult { .. } => b't',
    };
    for part in message.content() {
        let Content::Text { text } = part else { continue };
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

    fn key(messages: Vec<Message>, trial: u32, ordinal: u32) -> Key {
        Key::new(1, "m", &Request { messages, ..Request::default() }, trial, ordinal)
    }

    #[test]
    fn every_part_of_the_name_counts() {
        let hello = || vec![Message::user("hello")];
        let base = key(hello(), 1, 1);
        assert_eq!(base, key(hello(), 1, 1));
        assert_ne!(base, key(hello(), 2, 1));
        assert_ne!(base, key(hello(), 1, 2));
        assert_ne!(base, key(vec![Message::user("hello!")], 1, 1));
        assert_ne!(base, key(vec![Message::assistant("hello")], 1, 1));
        let request = Request { messages: hello(), ..Request::default() };
        assert_ne!(base, Key::new(2, "m", &request, 1, 1));
        assert_ne!(base, Key::new(1, "n", &request, 1, 1));
    }

    #[test]
    fn merging_messages_and_moving_the_system_up_change_nothing() {
        let apart = vec![Message::user("a"), Message::system("s"), Message::user("b")];
        let together = vec![
            Message::system("s"),
            Message::User { content: vec![Content::text("a"), Content::text("b")] },
        ];
        let joined = vec![Message::system("s"), Message::user("ab"), Message::user("")];
        assert_eq!(key(apart, 0, 0), key(together.clone(), 0, 0));
        assert_eq!(key(joined, 0, 0), key(together, 0, 0));
    }

    #[test]
    fn purposes_are_independent() {
        let key = Key::event(1, 1);
        let draw = |purpose: &str| key.rng(purpose).random::<u64>();
        assert_eq!(draw("a"), draw("a"));
        assert_ne!(draw("a"), draw("b"));
    }
}
