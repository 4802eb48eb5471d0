//! Prior knowledge about candidates.

use super::error::OptionsError;
use crate::money::model_dollars;
use crate::space::Space;
use bakeoff_core::NanoDollars;
use serde::{Deserialize, Serialize};

/// Prior knowledge about one candidate for one role.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
pub struct Hint {
    /// Position in a ranking by quality, the lowest is the best; candidates without one come last.
    pub quality_rank: Option<f64>,
    /// Cost of a typical call.
    #[serde(default, with = "crate::money::optional_dollars")]
    pub price: Option<NanoDollars>,
}

/// Hints for each candidate of each role, in the order of the space.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct Hints(pub Vec<Vec<Hint>>);

impl Hints {
    /// Creates hints from the cost of a typical call of each candidate of each role. A more expensive candidate counts as
    /// better, as far as nothing else is known.
    pub fn from_prices(prices: Vec<Vec<Option<NanoDollars>>>) -> Hints {
        let hint = |price: Option<NanoDollars>| Hint {
            quality_rank: price.map(|price| -model_dollars(price)),
            price,
        };
        Hints(prices.into_iter().map(|role| role.into_iter().map(hint).collect()).collect())
    }

    pub(crate) fn check(&self, space: &Space) -> Result<(), OptionsError> {
        let roles = space.roles();
        let matches_space = self.0.len() == roles.len()
            && self.0.iter().zip(roles).all(|(hints, role)| hints.len() == role.candidates.len());
        if !matches_space {
            return Err(OptionsError::Hints);
        }
        for (hints, role) in self.0.iter().zip(roles) {
            if hints.iter().filter_map(|hint| hint.quality_rank).any(f64::is_nan) {
                return Err(OptionsError::HintNotANumber(role.name.clone()));
            }
        }
        Ok(())
    }

    /// Candidates of a role with a better rank than this one, the nearest first.
    pub(crate) fn better(&self, role: usize, candidate: u32) -> Vec<u32> {
        self.before(role, candidate, |hint| hint.quality_rank)
    }

    /// Candidates of a role that are cheaper than this one, the nearest first.
    pub(crate) fn cheaper(&self, role: usize, candidate: u32) -> Vec<u32> {
        self.before(role, candidate, |hint| hint.price.map(model_dollars))
    }

    fn before(&self, role: usize, candidate: u32, key: fn(&Hint) -> Option<f64>) -> Vec<u32> {
        let hints = self.0.get(role).map_or(&[][..], Vec::as_slice);
        let key = |hint: &Hint| key(hint).unwrap_or(f64::INFINITY);
        let Some(own) = hints.get(candidate as usize).map(key) else { return Vec::new() };
        let mut before: Vec<(f64, u32)> = (hints.iter().zip(0_u32..))
            .map(|(hint, number)| (key(hint), number))
            .filter(|(other, _)| *other < own)
            .collect();
        before.sort_by(|one, two| two.0.total_cmp(&one.0).then(one.1.cmp(&two.1)));
        before.into_iter().map(|(_, number)| number).collect()
    }
}
