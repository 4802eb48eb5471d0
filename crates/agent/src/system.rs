//! What the system knows of processes, read from `/proc`. Where there is none, nothing is known.

use std::fs::File;
use std::io::Read;
use std::time::{Duration, Instant};

/// Longer environments are not read to their end.
const MOST_ENVIRONMENT: u64 = 4 * 1024 * 1024;

/// A process as the system sees it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Seen {
    pub(crate) id: i32,
    pub(crate) parent: i32,
    pub(crate) group: i32,
    /// In ticks since the system was booted. With the id it names a process for ever.
    pub(crate) started: u64,
    /// It has ended, and nobody has asked how.
    pub(crate) is_dead: bool,
    /// It is a thread of the kernel, which has no environment.
    pub(crate) is_of_the_kernel: bool,
}

/// How long a process may have neither arguments nor an environment before it is taken for one that
/// never has any.
const LONGEST_START: Duration = Duration::from_millis(200);

/// The flag of threads of the kernel.
const KERNEL_THREAD: u64 = 0x0020_0000;

/// Looks at one process.
pub(crate) fn look(id: i32) -> Option<Seen> {
    parse(id, &std::fs::read_to_string(format!("/proc/{id}/stat")).ok()?)
}

/// `12 (a name) S 1 12 12 …`: the name may hold anything, parentheses and spaces too.
fn parse(id: i32, stat: &str) -> Option<Seen> {
    let (_, rest) = stat.rsplit_once(')')?;
    let fields: Vec<&str> = rest.split_ascii_whitespace().collect();
    Some(Seen {
        id,
        parent: fields.get(1)?.parse().ok()?,
        group: fields.get(2)?.parse().ok()?,
        started: fields.get(19)?.parse().ok()?,
        is_dead: matches!(*fields.first()?, "Z" | "X"),
        is_of_the_kernel: fields.get(6)?.parse::<u64>().ok()? & KERNEL_THREAD != 0,
    })
}

/// The numbers of all processes there are, the newest first: they are the most likely to go soon.
pub(crate) fn all() -> Vec<i32> {
    let Ok(entries) = std::fs::read_dir("/proc") else { return Vec::new() };
    let mut ids: Vec<i32> =
        entries.filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok()).collect();
    ids.sort_unstable_by(|a, b| b.cmp(a));
    ids
}

/// Whether it is the same process still, and has not ended.
pub(crate) fn lives(process: &Seen) -> bool {
    look(process.id).is_some_and(|now| now.started == process.started && !now.is_dead)
}

/// This process and those that it was started by.
pub(crate) fn ancestors() -> Vec<i32> {
    let mut ids = Vec::new();
    let mut next = i32::try_from(std::process::id()).ok();
    while let Some(id) = next.filter(|id| !ids.contains(id)) {
        ids.push(id);
        next = look(id).map(|seen| seen.parent);
    }
    ids
}

/// When this process started; 0 where nothing is known.
pub(crate) fn own_start() -> u64 {
    i32::try_from(std::process::id()).ok().and_then(look).map_or(0, |own| own.started)
}

/// Whether a process was started with some variables.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Given {
    Yes,
    No,
    /// It has ended before its environment could be read.
    Unread,
}

/// Whether a process was started with all of these variables, each written `NAME=value`.
pub(crate) fn was_given(process: &Seen, variables: &[String]) -> Given {
    match has_all(variables, || read_of(process, "environ"), || is_starting(process)) {
        Some(true) => Given::Yes,
        Some(false) => Given::No,
        // Those of the kernel, and some others, live without.
        None if lives(process) => Given::No,
        None => Given::Unread,
    }
}

/// Whether what is read holds all of these variables; none when it is empty. Nothing can be read for
/// the moment in which a process becomes another program, so that it is read again as long as that
/// lasts.
fn has_all(
    variables: &[String],
    mut read: impl FnMut() -> Option<Vec<u8>>,
    mut is_starting: impl FnMut() -> bool,
) -> Option<bool> {
    let deadline = Instant::now() + LONGEST_START;
    // Those of other users cannot be read, and are none of our business.
    let mut bytes = read()?;
    let mut is_final = false;
    while bytes.is_empty() && !is_final {
        // It may start between two looks: the last one comes after it is known to have started.
        is_final = !is_starting() || Instant::now() >= deadline;
        std::thread::yield_now();
        bytes = read().unwrap_or_default();
    }
    let has = |wanted: &String| bytes.split(|byte| *byte == 0).any(|one| one == wanted.as_bytes());
    (!bytes.is_empty()).then(|| variables.iter().all(has))
}

/// Whether a process has neither arguments nor an end: it is just becoming a program, or going.
fn is_starting(process: &Seen) -> bool {
    let has_no_arguments =
        || read_of(process, "cmdline").is_some_and(|arguments| arguments.is_empty());
    !process.is_of_the_kernel && has_no_arguments() && lives(process)
}

fn read_of(process: &Seen, what: &str) -> Option<Vec<u8>> {
    let mut bytes = Vec::new();
    let file = File::open(format!("/proc/{}/{what}", process.id)).ok()?;
    file.take(MOST_ENVIRONMENT).read_to_end(&mut bytes).ok()?;
    Some(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_with_parentheses_do_not_confuse() {
        let stat = "42 (a) R (b) S 1 40 40 0 -1 4194560 1 0 0 0 0 0 0 0 20 0 1 0 777 1 1";
        let seen = Seen {
            id: 42,
            parent: 1,
            group: 40,
            started: 777,
            is_dead: false,
            is_of_the_kernel: false,
        };
        assert_eq!(parse(42, stat), Some(seen));
        let kernel = parse(2, &stat.replace("4194560", "2129984")).unwrap();
        assert!(kernel.is_of_the_kernel);
        assert_eq!(parse(42, "42 (short) S 1"), None);
        assert_eq!(parse(42, ""), None);
    }

    #[test]
    fn a_process_that_becomes_another_program_is_looked_at_again() {
        let wanted = ["ID=1".to_owned()];
        let readings = [&b""[..], b"", b"HOME=/\0ID=1\0"].map(|bytes| Some(bytes.to_vec()));
        // It has started between the second look and the third.
        let mut looks = [true, false].into_iter();
        let mut read = readings.clone().into_iter();
        assert_eq!(has_all(&wanted, || read.next()?, || looks.next().unwrap()), Some(true));
        // One that has arguments and no environment was given none.
        let mut read = readings.into_iter();
        assert_eq!(has_all(&wanted, || read.next()?, || false), None);
        // One that has gone is nobody's.
        assert_eq!(has_all(&wanted, || None, || true), None);
        assert_eq!(has_all(&wanted, || Some(b"ID=12\0".to_vec()), || true), Some(false));
    }

    #[test]
    #[cfg(target_os = "linux")]
    fn this_process_is_among_all() {
        let id = i32::try_from(std::process::id()).unwrap();
        let own = look(id).unwrap();
        assert!(all().contains(&id));
        assert!(lives(&own));
        assert!(!lives(&Seen { started: own.started + 1, ..own }));
        let path = format!("PATH={}", std::env::var("PATH").unwrap());
        assert_eq!(was_given(&own, std::slice::from_ref(&path)), Given::Yes);
        let shorter = [path[..path.len() - 1].to_owned()];
        assert_eq!(was_given(&own, &shorter), Given::No);
        // It has gone, and there is nothing to read.
        let gone = Seen { id: i32::MAX, ..own };
        assert_eq!(was_given(&gone, &shorter), Given::Unread);
        assert_eq!(own_start(), own.started);
    }
}
