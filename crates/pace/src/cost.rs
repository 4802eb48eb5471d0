//! What a request takes from a quota.

use std::ops::AddAssign;

/// Tokens of one request: an estimate before the answer is there, and the truth afterwards.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct TokenCost {
    /// Tokens of the prompt.
    pub input: u64,
    /// Tokens of the answer.
    pub output: u64,
}

impl TokenCost {
    /// Prompt and answer together.
    pub fn total(self) -> u64 {
        self.input.saturating_add(self.output)
    }
}

impl AddAssign for TokenCost {
    fn add_assign(&mut self, other: TokenCost) {
        self.input = self.input.saturating_add(other.input);
        self.output = self.output.saturating_add(other.output);
    }
}

/// What a quota counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Dimension {
    /// Requests, whatever their size.
    Requests,
    /// Tokens of prompt and answer together.
    Tokens,
    /// Tokens of the prompt.
    InputTokens,
    /// Tokens of the answer.
    OutputTokens,
}

impl Dimension {
    /// All of them.
    pub const ALL: [Dimension; 4] =
        [Dimension::Requests, Dimension::Tokens, Dimension::InputTokens, Dimension::OutputTokens];

    /// How much of this a request of that cost takes.
    pub fn of(self, cost: TokenCost) -> f64 {
        match self {
            Dimension::Requests => 1.0,
            Dimension::Tokens => cost.total() as f64,
            Dimension::InputTokens => cost.input as f64,
            Dimension::OutputTokens => cost.output as f64,
        }
    }
}
