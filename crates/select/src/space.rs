//! Search space: roles, combinations and datapoints.

use serde::{Deserialize, Serialize};

/// A role of an agent, with its candidates.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Role {
    /// Name of the role.
    pub name: String,
    /// Names of the candidates, as the user wrote them.
    pub candidates: Vec<String>,
}

/// Combinations of candidates, and the datapoints to evaluate them on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Space {
    roles: Vec<Role>,
    /// For each combination, the number of the candidate in each role.
    combos: Vec<Box<[u32]>>,
    datapoints: usize,
    /// Number of distinct cases among the datapoints.
    cases: usize,
}

/// One combination on one datapoint.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Cell {
    /// Number of the combination.
    pub combo: usize,
    /// Number of the datapoint.
    pub datapoint: usize,
}

/// An invalid search space.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum SpaceError {
    /// No roles.
    #[error("no roles given")]
    NoRoles,
    /// A role without candidates.
    #[error("role `{0}` has no candidates")]
    NoCandidates(String),
    /// Two roles with the same name.
    #[error("duplicate role `{0}`")]
    SameRole(String),
    /// A candidate that is listed twice.
    #[error("duplicate candidate `{candidate}` for role `{role}`")]
    SameCandidate {
        /// Name of the role.
        role: String,
        /// Name of the candidate.
        candidate: String,
    },
    /// More combinations than supported.
    #[error("more than {limit} combinations")]
    TooMany {
        /// Maximum number of combinations.
        limit: usize,
    },
    /// No datapoints.
    #[error("no datapoints given")]
    NoDatapoints,
    /// A combination that does not match the roles.
    #[error("combination {0} does not have one known candidate for each role")]
    BadCombo(usize),
}

/// Maximum number of combinations of a space.
const MAX_COMBOS: usize = 100_000;

impl Space {
    /// Creates the space of all combinations of the candidates.
    ///
    /// # Errors
    ///
    /// Something is missing or duplicate, or there are too many combinations.
    pub fn full(roles: Vec<Role>, datapoints: usize) -> Result<Space, SpaceError> {
        check(&roles, datapoints)?;
        let mut count: usize = 1;
        for role in &roles {
            count = count
                .checked_mul(role.candidates.len())
                .filter(|count| *count <= MAX_COMBOS)
                .ok_or(SpaceError::TooMany { limit: MAX_COMBOS })?;
        }
        let combos = (0..count)
            .map(|number| {
                // The last role changes fastest.
                let mut rest = number;
                let mut members: Vec<u32> = (roles.iter().rev())
                    .map(|role| {
                        let member = rest % role.candidates.len();
                        rest /= role.candidates.len();
                        member as u32
                    })
                    .collect();
                members.reverse();
                members.into()
            })
            .collect();
        Ok(Space { roles, combos, datapoints, cases: datapoints })
    }

    /// Declares that the datapoints are `cases` cases, repeated in this order.
    ///
    /// Intervals are clustered by case, because a repetition is not a new case.
    pub fn with_cases(self, cases: usize) -> Space {
        Space { cases: cases.clamp(1, self.datapoints.max(1)), ..self }
    }

    /// Returns the case of a datapoint.
    pub fn case(&self, datapoint: usize) -> usize {
        datapoint % self.cases
    }

    /// Returns the number of cases.
    pub fn cases(&self) -> usize {
        self.cases
    }

    /// Creates a space of these combinations only. Each has the number of the candidate in each role.
    ///
    /// # Errors
    ///
    /// Something is missing, duplicate or unknown.
    pub fn from_combos(
        roles: Vec<Role>,
        combos: Vec<Vec<usize>>,
        datapoints: usize,
    ) -> Result<Space, SpaceError> {
        check(&roles, datapoints)?;
        if combos.len() > MAX_COMBOS {
            return Err(SpaceError::TooMany { limit: MAX_COMBOS });
        }
        let fits = |combo: &[usize]| {
            combo.len() == roles.len()
                && combo.iter().zip(&roles).all(|(member, role)| *member < role.candidates.len())
        };
        if let Some(bad) = combos.iter().position(|combo| !fits(combo)) {
            return Err(SpaceError::BadCombo(bad));
        }
        let narrow = |combo: Vec<usize>| combo.into_iter().map(|member| member as u32).collect();
        let combos = combos.into_iter().map(narrow).collect();
        Ok(Space { combos, roles, datapoints, cases: datapoints })
    }

    /// Returns the roles.
    pub fn roles(&self) -> &[Role] {
        &self.roles
    }

    /// Returns the number of combinations.
    pub fn combos(&self) -> usize {
        self.combos.len()
    }

    /// Returns the number of datapoints.
    pub fn datapoints(&self) -> usize {
        self.datapoints
    }

    /// Returns the number of cells.
    pub fn cells(&self) -> usize {
        self.combos.len() * self.datapoints
    }

    /// Returns the number of the candidate in each role of a combination.
    pub fn members(&self, combo: usize) -> &[u32] {
        &self.combos[combo]
    }

    /// Returns the name of the candidate that a combination has for a role.
    pub fn candidate(&self, combo: usize, role: usize) -> &str {
        &self.roles[role].candidates[self.combos[combo][role] as usize]
    }

    /// Returns the name of a combination: `planner=a + solver=b`.
    pub fn describe(&self, combo: usize) -> String {
        let parts = self.roles.iter().enumerate();
        let parts = parts.map(|(role, of)| format!("{}={}", of.name, self.candidate(combo, role)));
        parts.collect::<Vec<_>>().join(" + ")
    }
}

fn check(roles: &[Role], datapoints: usize) -> Result<(), SpaceError> {
    if roles.is_empty() {
        return Err(SpaceError::NoRoles);
    }
    if datapoints == 0 {
        return Err(SpaceError::NoDatapoints);
    }
    for (position, role) in roles.iter().enumerate() {
        if role.candidates.is_empty() {
            return Err(SpaceError::NoCandidates(role.name.clone()));
        }
        if roles[..position].iter().any(|other| other.name == role.name) {
            return Err(SpaceError::SameRole(role.name.clone()));
        }
        for (at, candidate) in role.candidates.iter().enumerate() {
            if role.candidates[..at].contains(candidate) {
                let (role, candidate) = (role.name.clone(), candidate.clone());
                return Err(SpaceError::SameCandidate { role, candidate });
            }
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn role(name: &str, candidates: &[&str]) -> Role {
        let candidates = candidates.iter().map(|&candidate| candidate.to_owned()).collect();
        Role { name: name.to_owned(), candidates }
    }

    #[test]
    fn full_space_holds_each_combination_once() {
        let roles = vec![role("plan", &["a", "b"]), role("solve", &["x", "y", "z"])];
        let space = Space::full(roles, 10).unwrap();
        let all: Vec<String> = (0..space.combos()).map(|combo| space.describe(combo)).collect();
        assert_eq!(
            all,
            [
                "plan=a + solve=x",
                "plan=a + solve=y",
                "plan=a + solve=z",
                "plan=b + solve=x",
                "plan=b + solve=y",
                "plan=b + solve=z"
            ]
        );
        assert_eq!((space.cells(), space.members(5)), (60, &[1, 2][..]));
    }

    #[test]
    fn invalid_spaces_are_rejected() {
        let table = [
            (vec![], 1, SpaceError::NoRoles),
            (vec![role("a", &[])], 1, SpaceError::NoCandidates("a".to_owned())),
            (vec![role("a", &["x"])], 0, SpaceError::NoDatapoints),
            (vec![role("a", &["x"]), role("a", &["x"])], 1, SpaceError::SameRole("a".to_owned())),
            (
                vec![role("a", &["x", "x"])],
                1,
                SpaceError::SameCandidate { role: "a".to_owned(), candidate: "x".to_owned() },
            ),
        ];
        for (roles, datapoints, expected) in table {
            assert_eq!(Space::full(roles, datapoints), Err(expected));
        }
        let many: Vec<String> = (0..400).map(|number| number.to_string()).collect();
        let wide = |name: &str| Role { name: name.to_owned(), candidates: many.clone() };
        let error = Space::full(vec![wide("a"), wide("b")], 1).unwrap_err();
        assert_eq!(error.to_string(), "more than 100000 combinations");
        let error =
            Space::from_combos(vec![role("a", &["x"])], vec![vec![0], vec![1]], 1).unwrap_err();
        assert_eq!(error, SpaceError::BadCombo(1));
    }
}
