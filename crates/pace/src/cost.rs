//! The token cost of a request and the dimensions of a quota.

use std::ops::AddAssign;

/// Tokens of one request: an estimate before the response, the actual usage afterwards.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct TokenCost {
    /// Tokens of the prompt.
    pub input: u64,
    /// Tokens of the completion.
    pub output: u64,
}

impl TokenCost {
    /// Returns the tokens of prompt and completion.
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

/// The quantity that a quota limits.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Dimension {
    /// Requests of any size.
    Requests,
    /// Tokens of prompt and completion.
    Tokens,
    /// Tokens of the prompt.
    InputTokens,
    /// Tokens of the completion.
    OutputTokens,
}

impl Dimension {
    /// All dimensions.
    pub const ALL: [Dimension; 4] =
        [Dimension::Requests, Dimension::Tokens, Dimension::InputTokens, Dimension::OutputTokens];

    /// Returns the amount that a request of that cost takes in this dimension.
    pub fn of(self, cost: TokenCost) -> f64 {
        match self {
            Dimension::Requests => 1.0,
            Dimension::Tokens => cost.total() as f64,
            Dimension::InputTokens => cost.input as f64,
            Dimension::OutputTokens => cost.output as f64,
        }
    }
}
