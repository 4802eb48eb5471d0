//! A combination with the names of its roles and candidates.

use crate::space::{Role, Space, SpaceError};
use std::fmt;
use std::ops::Index;
use std::sync::Arc;

/// One candidate for each role, by name.
///
/// `combination["planner"]` is the name of the candidate for the role `planner`. The display form is
/// `planner=a + solver=b`.
#[derive(Clone)]
pub struct Combination {
    space: Arc<Space>,
    combo: usize,
}

impl Combination {
    pub(crate) fn new(space: Arc<Space>, combo: usize) -> Combination {
        Combination { space, combo }
    }

    /// Creates the only combination of a space with one candidate for each role, for tests.
    ///
    /// ```
    /// use bakeoff_select::Combination;
    ///
    /// let combination = Combination::of([("planner", "large"), ("solver", "small")])?;
    /// assert_eq!(&combination["solver"], "small");
    /// # Ok::<(), bakeoff_select::SpaceError>(())
    /// ```
    ///
    /// # Errors
    ///
    /// There is no role, or a role is given twice.
    pub fn of<R: Into<String>, C: Into<String>>(
        members: impl IntoIterator<Item = (R, C)>,
    ) -> Result<Combination, SpaceError> {
        let role = |(name, candidate): (R, C)| Role {
            name: name.into(),
            candidates: vec![candidate.into()],
        };
        let space = Space::full(members.into_iter().map(role).collect(), 1)?;
        Ok(Combination { space: Arc::new(space), combo: 0 })
    }

    pub(crate) fn space(&self) -> &Arc<Space> {
        &self.space
    }

    /// Returns the candidate for a role; `None` if there is no such role.
    pub fn get(&self, role: &str) -> Option<&str> {
        self.iter().find(|(name, _)| *name == role).map(|(_, candidate)| candidate)
    }

    /// Returns all roles with their candidates, in the order of the roles.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &str)> {
        let roles = self.space.roles().iter().enumerate();
        roles.map(|(role, of)| (of.name.as_str(), self.space.candidate(self.combo, role)))
    }

    /// Returns the number of the combination, as in [`SearchOutcome`](crate::SearchOutcome).
    pub fn number(&self) -> usize {
        self.combo
    }
}

impl Index<&str> for Combination {
    type Output = str;

    /// Returns the candidate for a role.
    ///
    /// # Panics
    ///
    /// There is no such role. [`Combination::get`] does not panic.
    #[expect(clippy::panic, reason = "indexing panics for a missing key, as that of maps does")]
    fn index(&self, role: &str) -> &str {
        match self.get(role) {
            Some(candidate) => candidate,
            None => panic!("no role `{role}` in {self}"),
        }
    }
}

impl fmt::Display for Combination {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.space.describe(self.combo))
    }
}

impl fmt::Debug for Combination {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_map().entries(self.iter()).finish()
    }
}

impl PartialEq for Combination {
    fn eq(&self, other: &Combination) -> bool {
        self.iter().eq(other.iter())
    }
}

impl Eq for Combination {}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::grid;

    #[test]
    fn candidates_are_found_by_role() {
        let combination = Combination::new(Arc::new(grid(&[2, 3], 1)), 4);
        assert_eq!((&combination["r0"], &combination["r1"]), ("m1", "m1"));
        assert_eq!(combination.get("r2"), None);
        assert_eq!(combination.to_string(), "r0=m1 + r1=m1");
        assert_eq!(format!("{combination:?}"), r#"{"r0": "m1", "r1": "m1"}"#);
    }

    #[test]
    #[should_panic(expected = "no role `critic` in r0=m0")]
    fn indexing_an_unknown_role_panics() {
        let _ = &Combination::new(Arc::new(grid(&[2], 1)), 0)["critic"];
    }
}
