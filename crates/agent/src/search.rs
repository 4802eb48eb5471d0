//! The search for the processes of one owner. A process that starts a child and ends while all are
//! looked at leaves one that was not listed yet, and is itself not to be read any more: so a look
//! during which anybody ended is taken again.

use crate::group::Group;
use crate::identity::Identity;
use crate::system::{self, Seen};
use bakeoff_core::ProcessGroup;
use std::collections::HashSet;

/// After so many looks that found nobody, nobody is taken to be there, though others ended during
/// each of them. Some machines start and end processes all the time.
const MOST_DOUBTFUL: u32 = 20;

/// A search that goes on from look to look.
pub(crate) struct Search {
    /// The variables that they were started with, each written `NAME=value`.
    variables: Vec<String>,
    /// Groups that are theirs, as far as they are still the same.
    groups: Vec<ProcessGroup>,
    /// This process and those that it was started by are never meant.
    spared: Vec<i32>,
    /// Those that have ended and that nobody has buried, by the look before.
    unburied: HashSet<(i32, u64)>,
    doubtful: u32,
}

/// What one look has shown.
pub(crate) struct Look {
    /// Those that live.
    pub(crate) ours: Vec<Seen>,
    /// Nobody is left, and nobody can have been overlooked.
    pub(crate) is_last: bool,
}

impl Search {
    pub(crate) fn of(identity: &Identity) -> Search {
        Search {
            variables: identity
                .variables()
                .map(|(name, value)| format!("{name}={value}"))
                .collect(),
            groups: Vec::new(),
            spared: system::ancestors(),
            unburied: HashSet::new(),
            doubtful: 0,
        }
    }

    /// Those of these groups are meant too.
    pub(crate) fn or_in(self, groups: &[ProcessGroup]) -> Search {
        Search { groups: groups.to_vec(), ..self }
    }

    /// Looks at all processes. Those that are found are told to `found` at once: some are gone before
    /// the look is over.
    pub(crate) fn look(&mut self, mut found: impl FnMut(&Seen)) -> Look {
        let (mut living, mut ours, mut others) = (Vec::new(), Vec::new(), Vec::new());
        let mut dead = HashSet::new();
        let mut is_quiet = true;
        for id in system::all() {
            let Some(process) = system::look(id) else {
                is_quiet = false;
                continue;
            };
            if process.is_dead {
                dead.insert((id, process.started));
                continue;
            }
            living.push(process);
            if self.spared.contains(&id) {
                continue;
            }
            if system::was_given(&process, &self.variables) {
                found(&process);
                ours.push(process);
            } else {
                others.push(process);
            }
        }
        for group in &self.groups {
            let members = || living.iter().filter(|process| process.group == group.id);
            let leader = living.iter().find(|process| process.id == group.id);
            let is_theirs = match leader {
                // The number may have been given to another one since.
                Some(leader) => leader.started == group.started,
                // A group's number is not given away as long as it has members; but it may have
                // had none for a while.
                None => members().any(|member| ours.contains(member)),
            };
            if is_theirs && Group::is_foreign(group.id) {
                let more: Vec<Seen> =
                    members().filter(|one| !ours.contains(one)).copied().collect();
                more.iter().for_each(&mut found);
                ours.extend(more);
            }
        }
        is_quiet &= dead.is_subset(&self.unburied) && others.iter().all(system::lives);
        self.unburied = dead;
        self.doubtful = if ours.is_empty() && !is_quiet { self.doubtful + 1 } else { 0 };
        let is_last = ours.is_empty() && (is_quiet || self.doubtful >= MOST_DOUBTFUL);
        Look { ours, is_last }
    }
}
