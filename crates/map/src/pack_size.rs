//! Automatic pack size, from the limit that binds.
//!
//! If requests per minute are the binding limit, larger packs raise the throughput until tokens per
//! minute bind as well. If tokens bind first, packs gain nothing, and single items give the best
//! answers.

use bakeoff_pace::{LearnedLimit, Limits};

/// Maximum automatic pack size. Models lose track of more items.
const MAX_ITEMS: u32 = 50;

/// Pack size if no limit is known.
pub(crate) const DEFAULT_ITEMS: u32 = 10;

/// Average sizes of prompts and answers, in tokens.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct TokenSizes {
    /// Prompt without items.
    pub overhead: f64,
    /// Item in a prompt.
    pub item: f64,
    /// Answer for an item.
    pub answer: f64,
    /// Maximum tokens of a request.
    pub budget: f64,
}

/// The limit that determines the throughput.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum BindingLimit {
    /// Requests per minute.
    Requests {
        /// Requests per minute.
        rpm: f64,
    },
    /// Tokens per minute.
    Tokens {
        /// Tokens of prompts and answers per minute.
        tpm: f64,
    },
    /// Concurrent requests.
    Concurrency(u32),
    /// Tokens per request.
    RequestTokens(u64),
    /// No limit is known.
    Unknown,
}

/// A pack size and the limit it follows from.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct PackChoice {
    /// Maximum number of items per request.
    pub items: u32,
    /// The binding limit.
    pub binding: BindingLimit,
}

/// Chooses a pack size from the configured limits, the limits learned by earlier runs, and the sizes of
/// the rows.
pub fn choose_pack_size(
    limits: &Limits,
    learned: Option<LearnedLimit>,
    sizes: TokenSizes,
) -> PackChoice {
    let learned_rpm = match learned {
        Some(LearnedLimit::Rate(per_second)) => Some(per_second * 60.0),
        _ => None,
    };
    let rpm = limits.rpm.map(|rpm| rpm as f64).or(learned_rpm);
    let (input, answer) = (sizes.item, sizes.answer);
    let single = sizes.overhead + input + answer;
    // Converts each limit on tokens into one on prompts and answers together, in these proportions.
    let share = |limit: Option<u64>, part: f64| limit.map(|limit| limit as f64 * single / part);
    let tpm = [
        limits.tpm.map(|tpm| tpm as f64),
        share(limits.itpm, sizes.overhead + input),
        share(limits.otpm, answer),
    ];
    let tpm = tpm.into_iter().flatten().min_by(f64::total_cmp);
    let fitting = ((sizes.budget - sizes.overhead) / (input + answer)).floor();
    let max_items = f64::from(MAX_ITEMS);
    let max = if fitting.is_finite() { fitting.clamp(1.0, max_items) } else { max_items };
    match (rpm, tpm) {
        (Some(rpm), Some(tpm)) if rpm * single < tpm => {
            // With more items, tokens would bind.
            let enough = ((tpm / rpm - sizes.overhead) / (input + answer)).ceil();
            PackChoice {
                items: enough.clamp(1.0, max) as u32,
                binding: BindingLimit::Requests { rpm },
            }
        }
        (_, Some(tpm)) => PackChoice { items: 1, binding: BindingLimit::Tokens { tpm } },
        (Some(rpm), None) => {
            PackChoice { items: max as u32, binding: BindingLimit::Requests { rpm } }
        }
        (None, None) => {
            let items = DEFAULT_ITEMS.min(max as u32);
            match learned {
                _ if max < f64::from(DEFAULT_ITEMS) => {
                    PackChoice { items, binding: BindingLimit::RequestTokens(sizes.budget as u64) }
                }
                Some(LearnedLimit::Cap(cap)) => {
                    PackChoice { items, binding: BindingLimit::Concurrency(cap) }
                }
                _ => PackChoice { items, binding: BindingLimit::Unknown },
            }
        }
    }
}

impl std::fmt::Display for BindingLimit {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            BindingLimit::Requests { rpm } => {
                write!(f, "limit: {} requests per minute", rpm.round())
            }
            BindingLimit::Tokens { tpm } => {
                write!(f, "limit: {} tokens per minute", tpm.round())
            }
            BindingLimit::Concurrency(cap) => write!(f, "limit: {cap} concurrent requests"),
            BindingLimit::RequestTokens(tokens) => write!(f, "limit: {tokens} tokens per request"),
            BindingLimit::Unknown => f.write_str("limits unknown"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SIZES: TokenSizes =
        TokenSizes { overhead: 100.0, item: 50.0, answer: 50.0, budget: 4100.0 };

    fn items(limits: Limits, learned: Option<LearnedLimit>) -> u32 {
        choose_pack_size(&limits, learned, SIZES).items
    }

    #[test]
    fn packs_are_large_if_requests_bind_and_single_items_if_tokens_bind() {
        let auto = Limits::auto;
        assert_eq!(items(auto().rpm(60), None), 40, "as many as fit into the budget");
        // 60 × (100 + 20 × 100) tokens per minute: tokens bind from 20 items.
        assert_eq!(items(auto().rpm(60).tpm(126_000), None), 20);
        assert_eq!(items(auto().rpm(60).tpm(12_000), None), 1, "tokens bind at once");
        assert_eq!(items(auto().tpm(1_000_000), None), 1);
        assert_eq!(items(auto().rpm(60).otpm(60 * 50 * 8), None), 15);
        assert_eq!(items(auto().rpm(60).itpm(60 * 150), None), 1);
        assert_eq!(items(auto(), Some(LearnedLimit::Rate(1.0))), 40);
        assert_eq!(items(auto(), Some(LearnedLimit::Cap(8))), 10);
        assert_eq!(items(auto(), None), 10);
        let large = TokenSizes { item: 5000.0, ..SIZES };
        let choice = PackChoice { items: 1, binding: BindingLimit::RequestTokens(4100) };
        assert_eq!(choose_pack_size(&auto(), None, large), choice);
        assert_eq!(
            choose_pack_size(&auto().rpm(60), None, large).items,
            1,
            "no two items fit together"
        );
        let empty = TokenSizes { overhead: 0.0, item: 0.0, answer: 0.0, budget: 0.0 };
        assert!((1..=50).contains(&choose_pack_size(&auto().rpm(60), None, empty).items));
    }
}
