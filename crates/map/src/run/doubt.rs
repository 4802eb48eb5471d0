//! Requests that were not answered, when it is not clear whether that is because of their rows.
//!
//! Nobody wants fifty thousand error rows because a provider was down, or because of a parameter
//! that the model does not know. So such failures wait until the model answers another request: then
//! it was the rows, or a trouble that is over. When too many come in a row, the job ends, and the
//! same command asks again.

/// Failures in a row after which a job ends.
const MOST: usize = 10;

/// What else may be the reason.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Doubt {
    /// The provider is in trouble: throttled or failing until retries end.
    Trouble,
    /// Something that is the same in all requests.
    Request,
}

/// What to do with a failure.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Ruling<T> {
    /// They are taken for what they are: these rows have no answer. Whoever failed because of
    /// trouble that is over may be asked once more.
    Take(Vec<(T, Doubt)>),
    /// It is not known yet.
    Wait,
    /// Nobody is answered; the last of the failures.
    GiveUp(T),
}

/// Failures that wait.
#[derive(Debug)]
pub(super) struct Waiting<T> {
    /// It has answered such requests, now or before.
    is_able: bool,
    /// It answers at present.
    is_up: bool,
    failures: Vec<(T, Doubt)>,
}

impl<T> Default for Waiting<T> {
    fn default() -> Waiting<T> {
        Waiting { is_able: false, is_up: false, failures: Vec::new() }
    }
}

impl<T> Waiting<T> {
    /// The model has answered: those that wait failed because of their rows.
    pub(super) fn answered(&mut self) -> Vec<(T, Doubt)> {
        (self.is_able, self.is_up) = (true, true);
        self.take(|_| true)
    }

    /// The model has answered before, as the journal or the cache knows: it takes such requests,
    /// whether or not it is there at present.
    pub(super) fn answered_before(&mut self) -> Vec<(T, Doubt)> {
        self.is_able = true;
        self.take(|doubt| doubt == Doubt::Request)
    }

    /// A request failed.
    pub(super) fn failed(&mut self, failure: T, doubt: Doubt) -> Ruling<T> {
        if doubt == Doubt::Request && self.is_able {
            return Ruling::Take(vec![(failure, doubt)]);
        }
        if self.failures.len() + 1 >= MOST {
            self.failures.clear();
            return Ruling::GiveUp(failure);
        }
        self.failures.push((failure, doubt));
        Ruling::Wait
    }

    /// Nothing else is under way that might be answered. Whoever is in trouble and has answered
    /// nobody is down, however few requests there are.
    pub(super) fn nothing_left(&mut self) -> Ruling<T> {
        let is_trouble = self.failures.iter().all(|(_, doubt)| *doubt == Doubt::Trouble);
        let mut failures = self.take(|_| true);
        match failures.pop() {
            Some((last, _)) if is_trouble && !self.is_up => Ruling::GiveUp(last),
            last => {
                failures.extend(last);
                Ruling::Take(failures)
            }
        }
    }

    fn take(&mut self, is_meant: impl Fn(Doubt) -> bool) -> Vec<(T, Doubt)> {
        let (taken, left) = self.failures.drain(..).partition(|(_, doubt)| is_meant(*doubt));
        self.failures = left;
        taken
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn failures_wait_for_an_answer_to_another_request() {
        let mut waiting = Waiting::default();
        assert_eq!(waiting.failed(1, Doubt::Trouble), Ruling::Wait);
        assert_eq!(waiting.failed(2, Doubt::Request), Ruling::Wait);
        assert_eq!(waiting.answered(), [(1, Doubt::Trouble), (2, Doubt::Request)]);
        assert_eq!(waiting.failed(3, Doubt::Request), Ruling::Take(vec![(3, Doubt::Request)]));
        assert_eq!(waiting.failed(4, Doubt::Trouble), Ruling::Wait);
        assert_eq!(waiting.nothing_left(), Ruling::Take(vec![(4, Doubt::Trouble)]));
        assert_eq!(waiting.nothing_left(), Ruling::Take(vec![]));
    }

    #[test]
    fn what_is_known_from_before_says_nothing_about_now() {
        let mut waiting = Waiting::default();
        assert_eq!(waiting.failed(1, Doubt::Trouble), Ruling::Wait);
        assert_eq!(waiting.failed(2, Doubt::Request), Ruling::Wait);
        assert_eq!(waiting.answered_before(), [(2, Doubt::Request)]);
        assert_eq!(waiting.failed(3, Doubt::Request), Ruling::Take(vec![(3, Doubt::Request)]));
        assert_eq!(waiting.nothing_left(), Ruling::GiveUp(1));
    }

    #[test]
    fn too_many_in_a_row_end_the_job() {
        let mut waiting = Waiting::default();
        for doubt in [Doubt::Trouble, Doubt::Request] {
            for number in 1..MOST {
                assert_eq!(waiting.failed(number, doubt), Ruling::Wait);
            }
            assert_eq!(waiting.failed(MOST, doubt), Ruling::GiveUp(MOST));
        }
        assert_eq!(waiting.failed(1, Doubt::Trouble), Ruling::Wait);
        assert_eq!(waiting.nothing_left(), Ruling::GiveUp(1));
        assert_eq!(waiting.failed(1, Doubt::Request), Ruling::Wait);
        assert_eq!(waiting.nothing_left(), Ruling::Take(vec![(1, Doubt::Request)]));
    }
}
