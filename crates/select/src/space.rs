//! What there is to choose from.

use serde::{Deserialize, Serialize};

/// A role and who could fill it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Role {
    /// Its name.
    pub name: String,
    /// Candidates, as the user named them.
    pub candidates: Vec<String>,
}

/// All combinations, and the datapoints that they can be tried on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Space {
    roles: Vec<Role>,
    /// For each combination, the number of the candidate in each role.
    combos: Vec<Box<[u32]>>,
    datapoints: usize,
    /// Different ones among the datapoints.
    cases: usize,
}

/// One combination on one datapoint, by number.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Cell {
    /// Which combination.
    pub combo: usize,
    /// Which datapoint.
    pub datapoint: usize,
}

/// There is nothing to choose from.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum SpaceError {
    /// No role at all.
    #[error("there are no roles")]
    NoRoles,
    /// A role that nobody could fill.
    #[error("the role `{0}` has no candidates")]
    NoCandidates(String),
    /// Two roles of one name.
    #[error("two roles are named `{0}`")]
    SameRole(String),
    /// A candidate that is named twice.
    #[error("the role `{role}` has the candidate `{candidate}` twice")]
    SameCandidate {
        /// Which role.
        role: String,
        /// Who.
        candidate: String,
    },
    /// More combinations than can be handled.
    #[error("there are more than {most} combinations")]
    TooMany {
        /// The most there may be.
        most: usize,
    },
    /// Nothing to try them on.
    #[error("there are no datapoints")]
    NoDatapoints,
    /// A combination that does not fit the roles.
    #[error("combination {0} does not have one known candidate for each role")]
    BadCombo(usize),
}

/// Most combinations of a space.
const MOST_COMBOS: usize = 100_000;

impl Space {
    /// All combinations of the candidates.
    ///
    /// # Errors
    ///
    /// Something is missing, or named twice.
    pub fn full(roles: Vec<Role>, datapoints: usize) -> Result<Space, SpaceError> {
        check(&roles, datapoints)?;
        let mut count: usize = 1;
        for role in &roles {
            count = count
                .checked_mul(role.candidates.len())
                .filter(|count| *count <= MOST_COMBOS)
                .ok_or(SpaceError::TooMany { most: MOST_COMBOS })?;
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

    /// The same, where the datapoints are so many cases over and over: what is said of how sure a mean
    /// is knows that the repetitions of a case are no new cases.
    pub fn repeating(self, cases: usize) -> Space {
        Space { cases: cases.clamp(1, self.datapoints.max(1)), ..self }
    }

    /// The case of a datapoint.
    pub fn case(&self, datapoint: usize) -> usize {
        datapoint % self.cases
    }

    /// How many cases there are.
    pub fn cases(&self) -> usize {
        self.cases
    }

    /// Only these combinations: for each, the number of the candidate in each role.
    ///
    /// # Errors
    ///
    /// Something is missing, named twice or not there.
    pub fn of(
        roles: Vec<Role>,
        combos: Vec<Vec<usize>>,
        datapoints: usize,
    ) -> Result<Space, SpaceError> {
        check(&roles, datapoints)?;
        if combos.len() > MOST_COMBOS {
            return Err(SpaceError::TooMany { most: MOST_COMBOS });
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

    /// The roles.
    pub fn roles(&self) -> &[Role] {
        &self.roles
    }

    /// How many combinations there are.
    pub fn combos(&self) -> usize {
        self.combos.len()
    }

    /// How many datapoints there are.
    pub fn datapoints(&self) -> usize {
        self.datapoints
    }

    /// How many cells there are.
    pub fn cells(&self) -> usize {
        self.combos.len() * self.datapoints
    }

    /// The number of the candidate in each role of a combination.
    pub fn members(&self, combo: usize) -> &[u32] {
        &self.combos[combo]
    }

    /// The candidate that a combination has for a role, by number.
    pub fn candidate(&self, combo: usize, role: usize) -> &str {
        &self.roles[role].candidates[self.combos[combo][role] as usize]
    }

    /// A combination in words: `planner=a + solver=b`.
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
    for (place, role) in roles.iter().enumerate() {
        if role.candidates.is_empty() {
            return Err(SpaceError::NoCandidates(role.name.clone()));
        }
        if roles[..place].iter().any(|other| other.name == role.name) {
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
    fn all_combinations_are_there_once() {
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
    fn what_cannot_be_chosen_from_is_told() {
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
        assert_eq!(error.to_string(), "there are more than 100000 combinations");
        let error = Space::of(vec![role("a", &["x"])], vec![vec![0], vec![1]], 1).unwrap_err();
        assert_eq!(error, SpaceError::BadCombo(1));
    }
}
