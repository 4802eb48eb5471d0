//! How many items a request should have, from the limit that binds.
//!
//! Where requests per minute run out first, larger packs bring more rows through, until tokens per
//! minute run out as well. Where tokens run out first, packs bring nothing, and an item alone is
//! answered best.

use bakeoff_pace::{LearnedLimit, Limits};

/// Most items that are packed without being asked for: models lose track of more.
const MOST: u32 = 50;

/// Items when nothing is known about limits.
const UNKNOWN: u32 = 10;

/// How large prompts and answers are, on average, in tokens.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Sizes {
    /// A prompt without items.
    pub overhead: f64,
    /// An item in a prompt.
    pub item: f64,
    /// The answer about an item.
    pub answer: f64,
    /// Most tokens of a request.
    pub budget: f64,
}

/// What binds.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Binding {
    /// So many requests per minute, whatever their size.
    Requests {
        /// Per minute.
        rpm: f64,
    },
    /// So many tokens per minute.
    Tokens {
        /// Of prompts and answers together, per minute.
        tpm: f64,
    },
    /// So many at once.
    Connections(u32),
    /// So many tokens per request.
    Budget(u64),
    /// Nobody knows.
    Unknown,
}

/// How many items a request should have, and why.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Choice {
    /// Most items per request.
    pub items: u32,
    /// What binds.
    pub binding: Binding,
}

/// Chooses from what is set, what earlier runs have learned, and how large rows are.
pub fn choose(limits: &Limits, learned: Option<LearnedLimit>, sizes: Sizes) -> Choice {
    let learned_rpm = match learned {
        Some(LearnedLimit::Rate(per_second)) => Some(per_second * 60.0),
        _ => None,
    };
    let rpm = limits.rpm.map(|rpm| rpm as f64).or(learned_rpm);
    let (input, answer) = (sizes.item, sizes.answer);
    let alone = sizes.overhead + input + answer;
    // Each limit on tokens as one on prompts and answers together, for requests of this shape.
    let share = |limit: Option<u64>, part: f64| limit.map(|limit| limit as f64 * alone / part);
    let tpm = [
        limits.tpm.map(|tpm| tpm as f64),
        share(limits.itpm, sizes.overhead + input),
        share(limits.otpm, answer),
    ];
    let tpm = tpm.into_iter().flatten().min_by(f64::total_cmp);
    let room = ((sizes.budget - sizes.overhead) / (input + answer)).floor();
    let most = if room.is_finite() { room.clamp(1.0, f64::from(MOST)) } else { f64::from(MOST) };
    match (rpm, tpm) {
        (Some(rpm), Some(tpm)) if rpm * alone < tpm => {
            // From here on tokens bind, and more items per request bring nothing.
            let enough = ((tpm / rpm - sizes.overhead) / (input + answer)).ceil();
            Choice { items: enough.clamp(1.0, most) as u32, binding: Binding::Requests { rpm } }
        }
        (_, Some(tpm)) => Choice { items: 1, binding: Binding::Tokens { tpm } },
        (Some(rpm), None) => Choice { items: most as u32, binding: Binding::Requests { rpm } },
        (None, None) => {
            let items = UNKNOWN.min(most as u32);
            match learned {
                _ if most < f64::from(UNKNOWN) => {
                    Choice { items, binding: Binding::Budget(sizes.budget as u64) }
                }
                Some(LearnedLimit::Cap(cap)) => {
                    Choice { items, binding: Binding::Connections(cap) }
                }
                _ => Choice { items, binding: Binding::Unknown },
            }
        }
    }
}

impl std::fmt::Display for Binding {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Binding::Requests { rpm } => {
                write!(f, "requests are the limit: {} per minute", rpm.round())
            }
            Binding::Tokens { tpm } => {
                write!(f, "tokens are the limit: {} per minute", tpm.round())
            }
            Binding::Connections(cap) => write!(f, "{cap} requests at once are the limit"),
            Binding::Budget(tokens) => write!(f, "{tokens} tokens per request are the limit"),
            Binding::Unknown => f.write_str("nothing is known about limits"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SIZES: Sizes = Sizes { overhead: 100.0, item: 50.0, answer: 50.0, budget: 4100.0 };

    fn items(limits: Limits, learned: Option<LearnedLimit>) -> u32 {
        choose(&limits, learned, SIZES).items
    }

    #[test]
    fn larger_packs_where_requests_bind_and_single_items_where_tokens_do() {
        let auto = Limits::auto;
        assert_eq!(items(auto().rpm(60), None), 40, "as many as the budget has room for");
        // 60 × (100 + 20 × 100) tokens per minute: from 20 items on tokens bind.
        assert_eq!(items(auto().rpm(60).tpm(126_000), None), 20);
        assert_eq!(items(auto().rpm(60).tpm(12_000), None), 1, "tokens bind at once");
        assert_eq!(items(auto().tpm(1_000_000), None), 1);
        assert_eq!(items(auto().rpm(60).otpm(60 * 50 * 8), None), 15);
        assert_eq!(items(auto().rpm(60).itpm(60 * 150), None), 1);
        assert_eq!(items(auto(), Some(LearnedLimit::Rate(1.0))), 40);
        assert_eq!(items(auto(), Some(LearnedLimit::Cap(8))), 10);
        assert_eq!(items(auto(), None), 10);
        let large = Sizes { item: 5000.0, ..SIZES };
        let choice = Choice { items: 1, binding: Binding::Budget(4100) };
        assert_eq!(choose(&auto(), None, large), choice);
        assert_eq!(choose(&auto().rpm(60), None, large).items, 1, "none fits beside another");
        let nothing = Sizes { overhead: 0.0, item: 0.0, answer: 0.0, budget: 0.0 };
        assert!((1..=50).contains(&choose(&auto().rpm(60), None, nothing).items));
    }
}
