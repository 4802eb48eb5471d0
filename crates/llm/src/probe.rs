//! How much of a model can be used?
//!
//! A probe makes calls until the provider rejects some, and finds out whether the rejections depend
//! on how many are in flight or on how many are sent per time. What it does next is decided by a
//! state machine (`search`), what the rejections mean by a pure function (`verdict`); here they get
//! a clock and a client.

mod advice;
mod headers;
mod level;
mod round;
mod sample;
mod search;
#[cfg(test)]
mod tests;
mod verdict;

pub use advice::{Advice, rule_of_thumb};
pub use headers::Told;
pub use level::{Level, Purpose};
pub use search::{Limit, Stop};

use crate::{Call, CallContext, CallError, Client, Model, quota};
use bakeoff_core::{ErrorKind, Message, NanoDollars, Request, Usage};
use bakeoff_pace::{Limits, Strategy};
use futures_util::StreamExt;
use futures_util::stream::FuturesUnordered;
use headers::{Headers, until_full};
use sample::Outcome;
use search::{Bounds, Next, Search};
use std::time::Duration;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

/// How far a probe may go, and what it sends.
#[derive(Debug, Clone)]
pub struct ProbeConfig {
    /// Most requests.
    pub max_requests: u32,
    /// Most requests in flight.
    pub max_connections: u32,
    /// Most time, apart from the last answers.
    pub max_time: Duration,
    /// Most that it may cost, as far as prices are known.
    pub max_cost: Option<NanoDollars>,
    /// What is sent; each request ends with a number of its own.
    pub prompt: String,
    /// Most tokens of an answer.
    pub max_tokens: u64,
    /// Most time for one request.
    pub attempt_timeout: Duration,
    /// Stops the probe when cancelled: requests in flight finish, no other is sent.
    pub stop: CancellationToken,
}

impl Default for ProbeConfig {
    fn default() -> Self {
        ProbeConfig {
            max_requests: 1000,
            max_connections: 256,
            max_time: Duration::from_secs(120),
            max_cost: None,
            prompt: "Repeat this number and say nothing else:".to_owned(),
            max_tokens: 16,
            attempt_timeout: Duration::from_secs(60),
            stop: CancellationToken::new(),
        }
    }
}

impl ProbeConfig {
    /// What one request uses at most, with the prompt at four characters per token.
    pub fn usage(&self) -> Usage {
        let input = (self.prompt.chars().count() as u64 + 5).div_ceil(4);
        Usage { input, output: self.max_tokens, ..Usage::default() }
    }

    fn request(&self, number: u64) -> Request {
        let prompt = format!("{} {number}", self.prompt);
        Request {
            messages: vec![Message::user(prompt)],
            max_tokens: Some(self.max_tokens),
            ..Request::default()
        }
    }
}

/// What a probe found out.
#[derive(Debug, Clone, PartialEq)]
pub struct ProbeReport {
    /// What was tried, in order.
    pub levels: Vec<Level>,
    /// What limits the model.
    pub limit: Limit,
    /// What to set.
    pub advice: Option<Advice>,
    /// The advice was tried, and nothing was rejected.
    pub is_confirmed: bool,
    /// Why it ended early.
    pub stop: Option<Stop>,
    /// Limits that headers told of.
    pub told: Vec<Told>,
    /// The longest wait that a rejection asked for.
    pub longest_wait: Option<Duration>,
    /// Why a request failed that was not rejected for a limit; the last one.
    pub last_failure: Option<String>,
    /// Requests sent.
    pub requests: u32,
    /// Seconds that an answer usually takes.
    pub seconds_per_request: f64,
    /// Tokens of an answered request, on average.
    pub tokens_per_request: f64,
    /// What it cost; `None` when nobody knows the price.
    pub cost: Option<NanoDollars>,
    /// How long it took.
    pub seconds: f64,
}

/// Finds out how much of a model can be used. `on_level` is told of each level when it is over.
///
/// # Errors
///
/// The first call that was refused for another reason than a limit, such as a wrong key.
pub async fn probe(
    client: &Client,
    model: &Model,
    config: &ProbeConfig,
    on_level: &mut (dyn FnMut(&Level) + Send),
) -> Result<ProbeReport, CallError> {
    // One attempt per call, at once: the probe does its own pacing, and wants to see rejections.
    let unpaced = Limits::new(Strategy::None).max_retries(0);
    let model = model.clone().with_limits(unpaced.attempt_timeout(config.attempt_timeout));
    let started = Instant::now();
    let mut search = Search::new(Bounds {
        max_requests: config.max_requests,
        max_connections: config.max_connections.max(1),
        max_seconds: config.max_time.as_secs_f64(),
    });
    let mut books = Books::new(&model, config);
    let mut flying = FuturesUnordered::new();
    let (mut number, mut told_levels) = (0_u64, 0);
    loop {
        if config.stop.is_cancelled() {
            search.end(Stop::Interrupted);
        }
        let next = search.next(started.elapsed().as_secs_f64());
        search.levels.iter().skip(told_levels).for_each(&mut *on_level);
        told_levels = search.levels.len();
        let until = match next {
            Next::Done => break,
            Next::Send if books.is_spent(search.in_flight()) => {
                search.end(Stop::Cost);
                continue;
            }
            Next::Send => {
                let (request, model) = (config.request(number), &model);
                search.sent(started.elapsed().as_secs_f64(), number);
                flying.push(async move {
                    (number, client.call(model, request, &CallContext::default()).await)
                });
                number += 1;
                continue;
            }
            // Rounded up, so that the time has really come afterwards.
            Next::Until(time) => {
                Duration::try_from_secs_f64(time).ok().map(|time| time + Duration::from_micros(1))
            }
            Next::Listen => None,
        };
        let pause = async {
            match until.and_then(|until| started.checked_add(until)) {
                Some(until) => tokio::time::sleep_until(until).await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            Some((number, result)) = flying.next() => {
                let now = started.elapsed().as_secs_f64();
                books.settle(&mut search, now, number, result)?;
            }
            () = pause => {}
            () = config.stop.cancelled(), if !config.stop.is_cancelled() => {}
        }
    }
    Ok(books.report(search, started.elapsed().as_secs_f64()))
}

/// What a probe has seen and spent so far.
struct Books {
    headers: Headers,
    longest_wait: Option<Duration>,
    last_failure: Option<String>,
    max_cost: Option<NanoDollars>,
    /// What one request costs at most, where prices are known.
    price: Option<NanoDollars>,
    cost: Option<NanoDollars>,
    answers: u64,
    tokens: u64,
}

impl Books {
    fn new(model: &Model, config: &ProbeConfig) -> Books {
        let price = model.cost(&config.usage());
        Books {
            headers: Headers::default(),
            longest_wait: None,
            last_failure: None,
            max_cost: config.max_cost,
            price,
            cost: price.map(|_| NanoDollars(0)),
            answers: 0,
            tokens: 0,
        }
    }

    /// Whether one more request could cost more than is allowed.
    fn is_spent(&self, in_flight: usize) -> bool {
        let (Some(most), Some(cost), Some(price)) = (self.max_cost, self.cost, self.price) else {
            return false;
        };
        let flying = i64::try_from(in_flight).unwrap_or(i64::MAX).saturating_add(1);
        cost.0.saturating_add(price.0.saturating_mul(flying)) > most.0
    }

    fn settle(
        &mut self,
        search: &mut Search,
        now: f64,
        number: u64,
        result: Result<Call, CallError>,
    ) -> Result<(), CallError> {
        match result {
            Ok(call) => {
                let tokens = call.response.usage.total();
                self.answers += 1;
                self.tokens += tokens;
                let both = self.cost.zip(call.cost);
                self.cost = both.map(|(sum, cost)| NanoDollars(sum.0.saturating_add(cost.0)));
                let quota = quota::read(&call.headers, None);
                self.headers.note(&quota);
                let reset = until_full(&quota);
                search.ended(now, number, Outcome::Answered { tokens }, None, reset);
            }
            Err(error) => {
                let failure = &error.failure;
                match failure.kind {
                    ErrorKind::RateLimit => {
                        let quota = quota::read(&failure.headers, failure.retry_after);
                        self.headers.note(&quota);
                        self.longest_wait = self.longest_wait.max(quota.retry_after);
                        let wait = quota.retry_after.map(|wait| wait.as_secs_f64());
                        let reset = until_full(&quota);
                        if quota.readings.iter().any(|reading| reading.remaining < 1.0) {
                            search.told_of_a_rate();
                        }
                        search.ended(now, number, Outcome::Rejected, wait, reset);
                    }
                    ErrorKind::Transient | ErrorKind::Timeout | ErrorKind::MalformedResponse => {
                        self.last_failure = Some(error.to_string());
                        search.ended(now, number, Outcome::Failed, None, None);
                    }
                    ErrorKind::Quota => {
                        search.ended(now, number, Outcome::Rejected, None, None);
                        search.end(Stop::Quota);
                    }
                    _ => return Err(error),
                }
            }
        }
        Ok(())
    }

    fn report(self, search: Search, seconds: f64) -> ProbeReport {
        let seconds_per_request = search.latency();
        ProbeReport {
            advice: Advice::new(search.limit, seconds_per_request, &self.headers),
            limit: search.limit,
            is_confirmed: search.is_confirmed,
            stop: search.stop,
            told: self.headers.0,
            longest_wait: self.longest_wait,
            last_failure: self.last_failure,
            requests: search.requests(),
            seconds_per_request,
            tokens_per_request: match self.answers {
                0 => 0.0,
                answers => self.tokens as f64 / answers as f64,
            },
            cost: self.cost,
            seconds,
            levels: search.levels,
        }
    }
}
