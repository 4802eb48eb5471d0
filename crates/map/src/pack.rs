//! Packing rows into requests, in the order of the input, limited by items and tokens.

use crate::error::Error;
use crate::pack_size::DEFAULT_ITEMS;
use crate::row::Row;
use crate::task::DEFAULT_REQUEST_TOKENS;

/// Limits of a pack.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PackLimits {
    /// Maximum number of items.
    pub items: u32,
    /// Maximum tokens of prompt and reply. An item that exceeds it gets its own request.
    pub budget: u64,
    /// Maximum tokens of any request. An item that exceeds it is not sent.
    pub ceiling: Option<u64>,
    /// Maximum tokens of a reply.
    pub reply: Option<u64>,
    /// Tokens of a prompt without items.
    pub overhead: u64,
    /// Tokens of the answer for one item.
    pub answer: u64,
}

impl Default for PackLimits {
    fn default() -> PackLimits {
        PackLimits {
            items: DEFAULT_ITEMS,
            budget: DEFAULT_REQUEST_TOKENS,
            ceiling: None,
            reply: None,
            overhead: 0,
            answer: 0,
        }
    }
}

impl PackLimits {
    /// Checks that a prompt without items leaves room for one answer.
    pub(crate) fn check_prompt(&self) -> Result<(), Error> {
        let needed = self.overhead.saturating_add(self.answer);
        match self.ceiling.filter(|max| needed > *max) {
            Some(max) => Err(Error::PromptTooLarge { needed, max }),
            None => Ok(()),
        }
    }
}

/// Rows that share a request.
#[derive(Debug, Clone)]
pub struct Pack {
    /// Number of the pack, from 0.
    pub number: u64,
    /// Rows in the order of the input.
    pub rows: Vec<Row>,
    /// Reason why the pack cannot be sent.
    pub rejection: Option<String>,
}

impl Pack {
    /// Returns the size of the rows in bytes.
    pub(crate) fn bytes(&self) -> usize {
        self.rows.iter().map(Row::bytes).sum()
    }
}

/// Packs rows one by one.
#[derive(Debug)]
pub struct Packer {
    limits: PackLimits,
    rows: Vec<Row>,
    input: u64,
    next: u64,
    /// An oversized row, to be returned after the pack before it.
    oversized: Option<Pack>,
}

impl Packer {
    /// Creates a packer without rows.
    pub fn new(limits: PackLimits) -> Packer {
        Packer { limits, rows: Vec::new(), input: 0, next: 0, oversized: None }
    }

    /// Adds a row whose item has this number of tokens. Returns the previous pack if the row does not fit
    /// into it. Call [`Packer::take_oversized`] afterwards.
    pub fn push(&mut self, row: Row, tokens: u64) -> Option<Pack> {
        let limits = self.limits;
        let single = limits.overhead.saturating_add(tokens).saturating_add(limits.answer);
        if let Some(ceiling) = limits.ceiling.filter(|ceiling| single > *ceiling) {
            let previous = self.close();
            // The text is part of the output and not journaled: if it changes, old jobs cannot be resumed.
            let rejection = Some(format!(
                "the row is too large: it needs about {single} tokens, and a request may have {ceiling}"
            ));
            let number = self.take_number();
            self.oversized = Some(Pack { number, rows: vec![row], rejection });
            return previous;
        }
        let items = self.rows.len() as u64 + 1;
        let reply = limits.answer.saturating_mul(items);
        let total =
            limits.overhead.saturating_add(self.input).saturating_add(tokens).saturating_add(reply);
        let fits = items <= u64::from(limits.items)
            && total <= limits.budget
            && limits.reply.is_none_or(|max| reply <= max);
        let previous = if fits || self.rows.is_empty() { None } else { self.close() };
        self.rows.push(row);
        self.input += tokens;
        previous
    }

    /// Removes and returns the pack of an oversized row, which cannot be sent.
    pub fn take_oversized(&mut self) -> Option<Pack> {
        self.oversized.take()
    }

    /// Returns the remaining packs at the end, one per call.
    pub fn finish(&mut self) -> Option<Pack> {
        self.oversized.take().or_else(|| self.close())
    }

    fn close(&mut self) -> Option<Pack> {
        if self.rows.is_empty() {
            return None;
        }
        self.input = 0;
        let rows = std::mem::take(&mut self.rows);
        Some(Pack { number: self.take_number(), rows, rejection: None })
    }

    fn take_number(&mut self) -> u64 {
        let number = self.next;
        self.next += 1;
        number
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const LIMITS: PackLimits = PackLimits {
        items: 3,
        budget: 100,
        ceiling: Some(150),
        reply: None,
        overhead: 20,
        answer: 10,
    };

    fn pack_all(limits: PackLimits, tokens: &[u64]) -> Vec<(Vec<u64>, bool)> {
        let mut packer = Packer::new(limits);
        let mut packs = Vec::new();
        for (index, tokens) in tokens.iter().enumerate() {
            packs.extend(packer.push(Row { index: index as u64, fields: Vec::new() }, *tokens));
            packs.extend(packer.take_oversized());
        }
        packs.extend(packer.finish());
        for (number, pack) in packs.iter().enumerate() {
            assert_eq!(pack.number, number as u64);
        }
        let summary = |pack: Pack| {
            (pack.rows.iter().map(|row| row.index).collect(), pack.rejection.is_some())
        };
        packs.into_iter().map(summary).collect()
    }

    #[test]
    fn packs_are_limited_by_items_and_tokens() {
        let small = pack_all(LIMITS, &[1, 1, 1, 1]);
        assert_eq!(small, [(vec![0, 1, 2], false), (vec![3], false)]);
        // 20 + 30 + 30 + 2 × 10 is exactly the budget; each item counts one answer.
        assert_eq!(pack_all(LIMITS, &[30, 30]), [(vec![0, 1], false)]);
        assert_eq!(pack_all(LIMITS, &[30, 31]), [(vec![0], false), (vec![1], false)]);
        let reply = PackLimits { reply: Some(15), ..LIMITS };
        assert_eq!(pack_all(reply, &[1, 1]), [(vec![0], false), (vec![1], false)]);
    }

    #[test]
    fn large_row_gets_its_own_pack_and_oversized_row_is_rejected() {
        let sizes = [1, 90, 1, 121, 1];
        let expected = [
            (vec![0], false),
            (vec![1], false),
            (vec![2], false),
            (vec![3], true),
            (vec![4], false),
        ];
        assert_eq!(pack_all(LIMITS, &sizes), expected);
        assert_eq!(pack_all(LIMITS, &[999]), [(vec![0], true)]);
        assert_eq!(pack_all(LIMITS, &[]), []);
    }

    proptest! {
        #[test]
        fn every_row_is_packed_once_in_order_within_limits(
            tokens in proptest::collection::vec(0_u64..200, 0..60),
            items in 1_u32..8,
        ) {
            let limits = PackLimits { items, ..LIMITS };
            let packs = pack_all(limits, &tokens);
            let rows: Vec<u64> = packs.iter().flat_map(|(rows, _)| rows.clone()).collect();
            prop_assert_eq!(rows, (0..tokens.len() as u64).collect::<Vec<_>>());
            for (rows, is_rejected) in packs {
                let sum: u64 = rows.iter().map(|row| tokens[*row as usize] + 10).sum();
                prop_assert!(rows.len() <= items as usize);
                prop_assert!(rows.len() == 1 || sum + 20 <= 100);
                prop_assert_eq!(is_rejected, sum + 20 > 150);
            }
        }
    }
}
