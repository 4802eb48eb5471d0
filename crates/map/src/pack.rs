//! Which rows share a request: in the order of the input, by items and by tokens.

use crate::row::Row;

/// What a request may hold.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PackLimits {
    /// Most items.
    pub items: u32,
    /// Most tokens, prompt and reply together; an item that needs more has a request of its own.
    pub budget: u64,
    /// What cannot be sent at all, even alone.
    pub ceiling: Option<u64>,
    /// Most tokens of a reply.
    pub reply: Option<u64>,
    /// Tokens of a prompt without items.
    pub overhead: u64,
    /// Tokens of the answer about one item.
    pub answer: u64,
}

/// Rows that share a request.
#[derive(Debug, Clone)]
pub struct Pack {
    /// From 0.
    pub number: u64,
    /// In the order of the input.
    pub rows: Vec<Row>,
    /// Why it cannot be sent.
    pub refused: Option<String>,
}

impl Pack {
    /// How much its rows hold.
    pub(crate) fn bytes(&self) -> usize {
        self.rows.iter().map(Row::bytes).sum()
    }
}

/// Puts rows together, one after the other.
#[derive(Debug)]
pub struct Packer {
    limits: PackLimits,
    rows: Vec<Row>,
    input: u64,
    next: u64,
    /// A pack that has to wait until the one before it is taken.
    alone: Option<Pack>,
}

impl Packer {
    /// Nothing is packed yet.
    pub fn new(limits: PackLimits) -> Packer {
        Packer { limits, rows: Vec::new(), input: 0, next: 0, alone: None }
    }

    /// Takes a row whose item has so many tokens; gives the pack that it does not fit into any
    /// more. [`Packer::ready`] gives what is complete besides.
    pub fn push(&mut self, row: Row, tokens: u64) -> Option<Pack> {
        let limits = self.limits;
        let alone = limits.overhead.saturating_add(tokens).saturating_add(limits.answer);
        if let Some(ceiling) = limits.ceiling.filter(|ceiling| alone > *ceiling) {
            let before = self.close();
            let refused = Some(format!(
                "the row is too large: it needs about {alone} tokens, and a request may have {ceiling}"
            ));
            let number = self.number();
            self.alone = Some(Pack { number, rows: vec![row], refused });
            return before;
        }
        let items = self.rows.len() as u64 + 1;
        let reply = limits.answer.saturating_mul(items);
        let together =
            limits.overhead.saturating_add(self.input).saturating_add(tokens).saturating_add(reply);
        let fits = items <= u64::from(limits.items)
            && together <= limits.budget
            && limits.reply.is_none_or(|most| reply <= most);
        let before = if fits || self.rows.is_empty() { None } else { self.close() };
        self.rows.push(row);
        self.input += tokens;
        before
    }

    /// A pack that is complete though nothing more has come: a row that cannot be sent.
    pub fn ready(&mut self) -> Option<Pack> {
        self.alone.take()
    }

    /// What is left at the end.
    pub fn finish(&mut self) -> Option<Pack> {
        self.alone.take().or_else(|| self.close())
    }

    fn close(&mut self) -> Option<Pack> {
        if self.rows.is_empty() {
            return None;
        }
        self.input = 0;
        let rows = std::mem::take(&mut self.rows);
        Some(Pack { number: self.number(), rows, refused: None })
    }

    fn number(&mut self) -> u64 {
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

    fn packed(limits: PackLimits, tokens: &[u64]) -> Vec<(Vec<u64>, bool)> {
        let mut packer = Packer::new(limits);
        let mut packs = Vec::new();
        for (index, tokens) in tokens.iter().enumerate() {
            packs.extend(packer.push(Row { index: index as u64, fields: Vec::new() }, *tokens));
            packs.extend(packer.ready());
        }
        packs.extend(packer.finish());
        for (number, pack) in packs.iter().enumerate() {
            assert_eq!(pack.number, number as u64);
        }
        let shown =
            |pack: Pack| (pack.rows.iter().map(|row| row.index).collect(), pack.refused.is_some());
        packs.into_iter().map(shown).collect()
    }

    #[test]
    fn packs_end_at_so_many_items_or_tokens() {
        let small = packed(LIMITS, &[1, 1, 1, 1]);
        assert_eq!(small, [(vec![0, 1, 2], false), (vec![3], false)]);
        // 20 + 30 + 30 + 2 × 10 is exactly the budget; the answers count once per item.
        assert_eq!(packed(LIMITS, &[30, 30]), [(vec![0, 1], false)]);
        assert_eq!(packed(LIMITS, &[30, 31]), [(vec![0], false), (vec![1], false)]);
        let reply = PackLimits { reply: Some(15), ..LIMITS };
        assert_eq!(packed(reply, &[1, 1]), [(vec![0], false), (vec![1], false)]);
    }

    #[test]
    fn a_row_that_is_too_large_goes_alone_and_what_cannot_be_sent_is_refused() {
        let sizes = [1, 90, 1, 121, 1];
        let expected = [
            (vec![0], false),
            (vec![1], false),
            (vec![2], false),
            (vec![3], true),
            (vec![4], false),
        ];
        assert_eq!(packed(LIMITS, &sizes), expected);
        assert_eq!(packed(LIMITS, &[999]), [(vec![0], true)]);
        assert_eq!(packed(LIMITS, &[]), []);
    }

    proptest! {
        #[test]
        fn every_row_is_packed_once_in_order_and_within_the_limits(
            tokens in proptest::collection::vec(0_u64..200, 0..60),
            items in 1_u32..8,
        ) {
            let limits = PackLimits { items, ..LIMITS };
            let packs = packed(limits, &tokens);
            let rows: Vec<u64> = packs.iter().flat_map(|(rows, _)| rows.clone()).collect();
            prop_assert_eq!(rows, (0..tokens.len() as u64).collect::<Vec<_>>());
            for (rows, is_refused) in packs {
                let sum: u64 = rows.iter().map(|row| tokens[*row as usize] + 10).sum();
                prop_assert!(rows.len() <= items as usize);
                prop_assert!(rows.len() == 1 || sum + 20 <= 100);
                prop_assert_eq!(is_refused, sum + 20 > 150);
            }
        }
    }
}
