//! One judge's choice among some branches: rounds of both orders, until they agree.
//!
//! Several polls go on side by side, round by round, and names are given to loops in the order of
//! the polls. So a race with a panel asks the same questions in the same loops every time, whoever
//! answers first.

use super::ask::{Answer, Question, Silence, ask_all, sum};
use super::compact::{self, View};
use super::court::Court;
use super::prompt::question;
use super::{LlmJudgeEvaluation, Orders};
use crate::strategy::Ballot;
use bakeoff_agent::{AgentEvent, AgentLoopConfig, LoopId};
use bakeoff_core::{NanoDollars, Usage};
use rand::SeedableRng;
use rand::rngs::ChaCha8Rng;
use rand::seq::SliceRandom;

/// One judge's choice among some branches.
pub(crate) struct Poll<'j> {
    judge: &'j LlmJudgeEvaluation,
    /// As the judge's, but without compaction: what the judge sees is compacted already, and must
    /// not be cut through its fences. And with one turn: there are no tools, and who calls one all
    /// the same is not told so again and again.
    config: AgentLoopConfig,
    /// The branches, and what the judge sees of each.
    places: Vec<usize>,
    view: View,
    round: u32,
    /// How often each of `places` was named.
    named: Vec<usize>,
    /// The last reply that is no vote, and whether the judge could not even be asked.
    silence: Option<(Silence, String)>,
    pub(crate) conclusion: Option<Conclusion>,
    pub(crate) ballots: Vec<Ballot>,
    /// Ballots of earlier rounds.
    past_ballots: usize,
    /// What people should know about what the judge saw.
    pub(crate) notes: Vec<String>,
    pub(crate) usage: Usage,
    pub(crate) cost: Option<NanoDollars>,
}

/// What a judge's votes come to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Conclusion {
    /// Both orders name this branch.
    Decided(usize),
    /// The orders never agreed; these were named most often.
    Tied(Vec<usize>),
    /// Nobody can tell what the judge means in one of the orders, or in both; the branches that were
    /// named in the other.
    Unreadable(Vec<usize>),
    /// The judge could not be asked in one of the orders, or in both.
    Failed(String, Vec<usize>),
}

/// Branches, in an order in which a judge sees them.
type Seen = Vec<usize>;

impl<'j> Poll<'j> {
    pub(crate) fn new(
        judge: &'j LlmJudgeEvaluation,
        places: Vec<usize>,
        court: &Court<'_>,
    ) -> Self {
        let answer = |place: &usize| {
            court.outcomes.get(*place).map(|outcome| outcome.answer()).unwrap_or_default()
        };
        let responses: Vec<String> = places.iter().map(answer).collect();
        let window = judge.window();
        let view = compact::view(&court.material.prior, &responses, window);
        let mut config = AgentLoopConfig { context_config: None, ..judge.judge_config.clone() };
        config.limits.max_turns = 1;
        Poll {
            config,
            named: vec![0; places.len()],
            notes: view.words().into_iter().collect(),
            judge,
            places,
            view,
            round: 0,
            silence: None,
            conclusion: None,
            ballots: Vec::new(),
            past_ballots: 0,
            usage: Usage::default(),
            cost: Some(NanoDollars(0)),
        }
    }

    /// The round that decided, or the last one.
    pub(crate) fn rounds(&self) -> u32 {
        self.round
    }

    /// What the judge said in the last round.
    pub(crate) fn last_ballots(&self) -> &[Ballot] {
        self.ballots.get(self.past_ballots..).unwrap_or_default()
    }

    /// The questions of the next round; none when there is a conclusion.
    fn next_round(&mut self, court: &Court<'_>) -> Vec<(Seen, LoopId, String)> {
        if self.conclusion.is_some() {
            return Vec::new();
        }
        self.round += 1;
        self.past_ballots = self.ballots.len();
        let name = || court.session.next_loop(&self.config.segment());
        let first = name();
        let mut order: Vec<usize> = (0..self.places.len()).collect();
        let mut asked = Vec::new();
        if self.judge.orders == Orders::Both {
            if order.len() > 2 {
                let mut random = ChaCha8Rng::seed_from_u64(u64::from(first.number()));
                order.shuffle(&mut random);
            }
            let reversed: Vec<usize> = order.iter().rev().copied().collect();
            asked.push((reversed, name()));
        }
        asked.insert(0, (order, first));
        let questions: Vec<(Seen, LoopId, String)> = asked
            .into_iter()
            .map(|(order, loop_id)| {
                let prompt = self.prompt(&order, court);
                (order, loop_id, prompt)
            })
            .collect();
        if self.round == 1 {
            self.warn(&questions, court);
        }
        questions
    }

    fn prompt(&self, order: &[usize], court: &Court<'_>) -> String {
        let responses: Vec<&str> = order
            .iter()
            .filter_map(|place| self.view.responses.get(*place))
            .map(String::as_str)
            .collect();
        question(&court.material, &self.view.prior, &responses)
    }

    /// Tells everybody when the judge's window is too small for what it is sent.
    fn warn(&mut self, questions: &[(Seen, LoopId, String)], court: &Court<'_>) {
        let (Some(window), Some((_, loop_id, prompt))) = (self.judge.window(), questions.first())
        else {
            return;
        };
        let all = compact::tokens(self.judge.instructions()) + compact::tokens(prompt);
        let text = if !self.view.fits() {
            format!(
                "what the judge has to compare has about {} tokens even when compacted; there is room for {}",
                self.view.tokens, self.view.budget
            )
        } else if all > window {
            format!("the judge is sent about {all} tokens; its window has {window}")
        } else {
            return;
        };
        self.notes.push(text.clone());
        court.tx.send(AgentEvent::ProgressMessage { loop_id: loop_id.clone(), text });
    }

    /// Counts what came of a round.
    fn hear(&mut self, answers: Vec<(Seen, Answer)>) {
        let mut votes = Vec::new();
        for (order, answer) in answers {
            let seen: Vec<usize> =
                order.iter().filter_map(|index| self.places.get(*index)).copied().collect();
            let chosen = |vote: Result<usize, Silence>| {
                vote.ok().and_then(|number| order.get(number.checked_sub(1)?)).copied()
            };
            let vote = chosen(answer.vote());
            if let Err(silence) = answer.vote() {
                let reply = answer.said.last().map(|said| said.reply.clone());
                self.silence = Some((silence, reply.unwrap_or_default()));
            }
            votes.push(vote);
            self.usage += answer.usage;
            self.cost = sum(self.cost, answer.cost);
            self.ballots.extend(answer.said.into_iter().map(|said| Ballot {
                choice: chosen(said.vote).and_then(|index| self.places.get(index)).copied(),
                loop_id: said.loop_id,
                order: seen.clone(),
                reply: said.reply,
            }));
        }
        for index in votes.iter().flatten() {
            if let Some(count) = self.named.get_mut(*index) {
                *count += 1;
            }
        }
        self.conclusion = self.conclude(&votes);
    }

    fn conclude(&self, votes: &[Option<usize>]) -> Option<Conclusion> {
        let place = |index: usize| self.places.get(index).copied();
        if let Some(Some(first)) = votes.first()
            && votes.iter().all(|vote| *vote == Some(*first))
        {
            return place(*first).map(Conclusion::Decided);
        }
        // Whoever is silent in both orders has been asked four times already, or cannot be asked.
        let is_silent = votes.iter().all(Option::is_none);
        if !is_silent && self.round < self.judge.rounds {
            return None;
        }
        let most = self.named.iter().max().copied().unwrap_or_default();
        let is_leading = |index: &usize| most > 0 && self.named.get(*index) == Some(&most);
        let leading: Vec<usize> =
            (0..self.places.len()).filter(is_leading).filter_map(place).collect();
        let distinct = self.named.iter().filter(|count| **count > 0).count();
        Some(match &self.silence {
            Some((Silence::Failed, reason)) if distinct < 2 || is_silent => {
                Conclusion::Failed(reason.clone(), leading)
            }
            Some(_) if distinct < 2 || is_silent => Conclusion::Unreadable(leading),
            _ => Conclusion::Tied(leading),
        })
    }
}

/// Asks until every poll has its conclusion.
pub(crate) async fn settle(court: &Court<'_>, polls: &mut [Poll<'_>]) {
    loop {
        let mut asked = Vec::new();
        for (whose, poll) in polls.iter_mut().enumerate() {
            for (order, loop_id, prompt) in poll.next_round(court) {
                asked.push((whose, order, loop_id, prompt));
            }
        }
        if asked.is_empty() {
            return;
        }
        let mut whose = Vec::new();
        let mut questions = Vec::new();
        for (index, order, loop_id, prompt) in asked {
            let Some(poll) = polls.get(index) else { continue };
            questions.push(Question {
                loop_id,
                config: &poll.config,
                instructions: poll.judge.instructions(),
                prompt,
                responses: order.len(),
            });
            whose.push((index, order));
        }
        let answers = ask_all(court, questions).await;
        let mut heard: Vec<Vec<(Seen, Answer)>> = polls.iter().map(|_| Vec::new()).collect();
        for ((index, order), answer) in whose.into_iter().zip(answers) {
            if let Some(heard) = heard.get_mut(index) {
                heard.push((order, answer));
            }
        }
        for (poll, answers) in polls.iter_mut().zip(heard) {
            if !answers.is_empty() {
                poll.hear(answers);
            }
        }
    }
}
