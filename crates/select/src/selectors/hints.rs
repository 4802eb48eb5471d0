//! What is known of candidates before anything is tried.

use super::error::OptionsError;
use crate::space::Space;
use serde::{Deserialize, Serialize};

/// What is known of one candidate for one role.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
pub struct Hint {
    /// Its place in a ranking by quality, the best first; candidates without one come last.
    pub quality_rank: Option<f64>,
    /// What it costs, in any unit that is the same for all.
    pub price: Option<f64>,
}

/// What is known of each candidate of each role, in the order of the space.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct Hints(pub Vec<Vec<Hint>>);

impl Hints {
    pub(crate) fn check(&self, space: &Space) -> Result<(), OptionsError> {
        let roles = space.roles();
        let fits = self.0.len() == roles.len()
            && self.0.iter().zip(roles).all(|(hints, role)| hints.len() == role.candidates.len());
        if !fits {
            return Err(OptionsError::Hints);
        }
        for (hints, role) in self.0.iter().zip(roles) {
            let numbers = hints.iter().flat_map(|hint| [hint.quality_rank, hint.price]);
            if numbers.flatten().any(f64::is_nan) {
                return Err(OptionsError::HintNotANumber(role.name.clone()));
            }
        }
        Ok(())
    }

    /// Candidates of a role that are ranked better than this one, the nearest first.
    pub(crate) fn better(&self, role: usize, candidate: u32) -> Vec<u32> {
        self.before(role, candidate, |hint| hint.quality_rank)
    }

    /// Candidates of a role that are cheaper than this one, the nearest first.
    pub(crate) fn cheaper(&self, role: usize, candidate: u32) -> Vec<u32> {
        self.before(role, candidate, |hint| hint.price)
    }

    fn before(&self, role: usize, candidate: u32, of: fn(&Hint) -> Option<f64>) -> Vec<u32> {
        let hints = self.0.get(role).map_or(&[][..], Vec::as_slice);
        let place = |hint: &Hint| of(hint).unwrap_or(f64::INFINITY);
        let Some(own) = hints.get(candidate as usize).map(place) else { return Vec::new() };
        let mut before: Vec<(f64, u32)> = (hints.iter().zip(0_u32..))
            .map(|(hint, number)| (place(hint), number))
            .filter(|(other, _)| *other < own)
            .collect();
        before.sort_by(|one, two| two.0.total_cmp(&one.0).then(one.1.cmp(&two.1)));
        before.into_iter().map(|(_, number)| number).collect()
    }
}
