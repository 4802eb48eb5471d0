//! Token usage.

use serde::{Deserialize, Serialize};

/// Tokens consumed by one or more calls.
///
/// The first four counts do not overlap, so each has its own price; `reasoning` is the part of `output`
/// that was thinking.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Usage {
    /// Prompt tokens at the full price.
    pub input: u64,
    /// Answer tokens, including thinking.
    pub output: u64,
    /// Prompt tokens read from the provider's cache.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub cache_read: u64,
    /// Prompt tokens written to the provider's cache.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub cache_write: u64,
    /// The part of `output` that was thinking.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub reasoning: u64,
}

/// Largest plausible count of tokens of a trial. Larger ones, which faulty servers report, are unknown.
pub const MAX_TOKENS: u64 = 1_000_000_000;

fn is_zero(tokens: &u64) -> bool {
    *tokens == 0
}

impl Usage {
    /// Returns the prompt tokens, cached or not.
    pub fn prompt(&self) -> u64 {
        self.input.saturating_add(self.cache_read).saturating_add(self.cache_write)
    }

    /// Returns the usage unless a count is implausible: more than [`MAX_TOKENS`].
    pub fn plausible(self) -> Option<Usage> {
        let Usage { input, output, cache_read, cache_write, reasoning } = self;
        let counts = [input, output, cache_read, cache_write, reasoning];
        counts.iter().all(|count| *count <= MAX_TOKENS).then_some(self)
    }

    /// Returns all tokens.
    pub fn total(&self) -> u64 {
        self.prompt().saturating_add(self.output)
    }
}

impl std::ops::AddAssign for Usage {
    fn add_assign(&mut self, other: Usage) {
        self.input = self.input.saturating_add(other.input);
        self.output = self.output.saturating_add(other.output);
        self.cache_read = self.cache_read.saturating_add(other.cache_read);
        self.cache_write = self.cache_write.saturating_add(other.cache_write);
        self.reasoning = self.reasoning.saturating_add(other.reasoning);
    }
}
