//! The search for the processes of one owner. A process that starts a child and ends while all are
//! looked at leaves one that was not listed yet, and cannot itself be read any more: so a look is
//! taken again when somebody ended before it was known whose it was.

use crate::group::Group;
use crate::identity::Identity;
use crate::system::{self, Given, Seen};
use bakeoff_core::ProcessGroup;
use std::collections::HashSet;

/// After so many looks that found nobody, nobody is taken to be there, though somebody unknown ended
/// during each of them. Some machines start and end processes all the time.
const MOST_DOUBTFUL: u32 = 20;

/// A search that goes on from look to look.
pub(crate) struct Search {
    /// The variables that they were started with, each written `NAME=value`.
    variables: Vec<String>,
    /// Groups that are theirs, as far as they are still the same.
    groups: Vec<ProcessGroup>,
    /// This process and those that it was started by are never meant.
    spared: Vec<i32>,
    /// Who started earlier is not meant. In ticks since the system was booted.
    since: u64,
    doubt: Doubt,
}

/// What one look has shown.
pub(crate) struct Look {
    /// Those that live.
    pub(crate) ours: Vec<Seen>,
    /// Nobody is left, and nobody is likely to have been overlooked.
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
            since: 0,
            doubt: Doubt::default(),
        }
    }

    /// Those of these groups are meant too.
    pub(crate) fn or_in(self, groups: &[ProcessGroup]) -> Search {
        Search { groups: groups.to_vec(), ..self }
    }

    /// Only what this process has started is meant, and so nobody older.
    pub(crate) fn of_this_process(self) -> Search {
        Search { since: system::own_start(), ..self }
    }

    /// Looks at all processes. Those that are found are told to `found` at once: some are gone before
    /// the look is over.
    pub(crate) fn look(&mut self, mut found: impl FnMut(&Seen)) -> Look {
        let (mut living, mut ours, mut dead) = (Vec::new(), Vec::new(), HashSet::new());
        let mut has_unknown_gone = false;
        for id in system::all() {
            let Some(process) = system::look(id) else {
                has_unknown_gone = true;
                continue;
            };
            if process.started < self.since {
                continue;
            }
            if process.is_dead {
                dead.insert((id, process.started));
                continue;
            }
            living.push(process);
            if self.spared.contains(&id) {
                continue;
            }
            match system::was_given(&process, &self.variables) {
                Given::Yes => {
                    found(&process);
                    ours.push(process);
                }
                Given::No => {}
                Given::Unread => has_unknown_gone = true,
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
        let is_last = self.doubt.is_over(ours.is_empty(), has_unknown_gone, dead);
        Look { ours, is_last }
    }
}

/// Whether somebody may have been overlooked.
#[derive(Default)]
struct Doubt {
    /// Those that have ended and that nobody has buried, by the look before; by number and start.
    unburied: HashSet<(i32, u64)>,
    /// Looks in a row that found nobody while somebody unknown ended.
    looks: u32,
}

impl Doubt {
    /// Takes what a look has shown. Whoever is newly dead may have lived when it began.
    fn is_over(
        &mut self,
        has_found_nobody: bool,
        has_unknown_gone: bool,
        dead: HashSet<(i32, u64)>,
    ) -> bool {
        let is_quiet = !has_unknown_gone && dead.is_subset(&self.unburied);
        self.unburied = dead;
        self.looks = if has_found_nobody && !is_quiet { self.looks + 1 } else { 0 };
        has_found_nobody && (is_quiet || self.looks >= MOST_DOUBTFUL)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_look_during_which_somebody_unknown_ended_is_taken_again() {
        let none = HashSet::new;
        assert!(Doubt::default().is_over(true, false, none()));
        assert!(!Doubt::default().is_over(false, false, none()));
        let mut doubt = Doubt::default();
        assert!(!doubt.is_over(true, true, none()));
        assert!(doubt.is_over(true, false, none()));
    }

    #[test]
    fn the_dead_that_nobody_buries_are_doubted_once() {
        let mut doubt = Doubt::default();
        assert!(!doubt.is_over(true, false, HashSet::from([(7, 1)])));
        assert!(doubt.is_over(true, false, HashSet::from([(7, 1)])));
        // The same number, and another process.
        assert!(!doubt.is_over(true, false, HashSet::from([(7, 2)])));
    }

    #[test]
    fn where_processes_end_all_the_time_doubt_ends_too() {
        let mut doubt = Doubt::default();
        let mut look = |nobody| doubt.is_over(nobody, true, HashSet::new());
        assert!((1..MOST_DOUBTFUL).all(|_| !look(true)));
        // Somebody who is found begins it anew.
        assert!(!look(false));
        assert!((1..MOST_DOUBTFUL).all(|_| !look(true)));
        assert!(look(true));
    }

    #[test]
    #[cfg(target_os = "linux")]
    fn the_newly_dead_and_the_older_are_told_apart() {
        use nix::sys::wait::{Id, WaitPidFlag, waitid};
        let run = format!("search-{}", std::process::id());
        let identity = Identity { run, trial: None, part: None };
        let mut child = std::process::Command::new("cat")
            .envs(identity.variables())
            .stdin(std::process::Stdio::piped())
            .spawn()
            .unwrap();
        let id = i32::try_from(child.id()).unwrap();
        let found = |mut search: Search| {
            let mut ids = Vec::new();
            let look = search.look(|process| ids.push(process.id));
            (ids, look.is_last)
        };
        assert_eq!(found(Search::of(&identity).of_this_process()), (vec![id], false));
        let later = Search { since: u64::MAX, ..Search::of(&identity) };
        assert!(found(later).0.is_empty());
        // It ends, and nobody buries it: it may have started another one before.
        drop(child.stdin.take());
        let flags = WaitPidFlag::WEXITED | WaitPidFlag::WNOWAIT;
        waitid(Id::Pid(nix::unistd::Pid::from_raw(id)), flags).unwrap();
        assert_eq!(found(Search::of(&identity).of_this_process()), (vec![], false));
        child.wait().unwrap();
    }
}
