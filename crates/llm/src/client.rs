//! One call: a permit, an attempt, perhaps another, and what it all came to.

use crate::attempt::Prepared;
use crate::cache::{Cache, CacheKey};
use crate::flight::{Flights, Turn};
use crate::masked::Masked;
use crate::memory::Memory;
use crate::model::Model;
use crate::network::Network;
use crate::record::HttpObserver;
use crate::transport::Transport;
use crate::{Delta, Failure};
use bakeoff_core::{Content, ErrorKind, NanoDollars, Redactor, Request, Response};
use bakeoff_pace::{
    LearnedLimit, LimitsError, Pool, PoolKey, Pools, RetryPolicy, RetryProgress, RunTag,
};
use http::HeaderMap;
use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

/// Makes calls through pace, with retries, cache and prices. Share it behind an `Arc`.
#[derive(Debug)]
pub struct Client {
    pub(crate) transport: Arc<dyn Transport>,
    pub(crate) simulator: bakeoff_sim::Engine,
    /// The simulator's time zero.
    pub(crate) started: Instant,
    pub(crate) pools: Arc<Pools>,
    cache: Option<Cache>,
    flights: Flights,
    pub(crate) retry: RetryPolicy,
    pub(crate) redactor: Redactor,
    pub(crate) on_http: Option<HttpObserver>,
}

/// What a [`Client`] is made of; everything has a default.
#[derive(Debug, Default)]
pub struct ClientConfig {
    /// How requests travel; the real network when absent.
    pub transport: Option<Arc<dyn Transport>>,
    /// The simulated provider behind `sim/…`.
    pub simulator: bakeoff_sim::Config,
    /// Where answers are kept; nowhere when absent.
    pub cache: Option<Cache>,
    /// When calls are made again, where a model's limits do not say otherwise.
    pub retry: RetryPolicy,
    /// What must not show in error messages.
    pub redactor: Redactor,
    /// Told of every attempt.
    pub on_http: Option<HttpObserver>,
    /// Pools that other clients use too; own ones when absent.
    pub pools: Option<Arc<Pools>>,
    /// What earlier runs have found out about pools, for own ones.
    pub memory: Memory,
}

/// On whose behalf calls are made, and who listens.
#[derive(Default)]
pub struct CallContext<'a> {
    /// Which run; runs on one pool take turns.
    pub run: RunTag,
    /// What the answer is a sample of; answers are never shared between samples.
    pub sample: &'a str,
    /// Which trial.
    pub trial: u32,
    /// Counts identical requests within the trial, so that each stays a sample of its own.
    pub ordinals: Ordinals,
    /// Ends the call, wherever it is.
    pub cancel: CancellationToken,
    /// Lets an attempt that is under way finish, and makes no other.
    pub stop: CancellationToken,
    /// Told before every retry.
    pub on_retry: Option<&'a (dyn Fn(&Retry<'_>) + Send + Sync)>,
    /// Told of every piece of a streamed answer. After a retry the answer begins anew.
    pub on_delta: Option<&'a (dyn Fn(&Delta) + Send + Sync)>,
}

impl std::fmt::Debug for CallContext<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("CallContext").field("trial", &self.trial).finish_non_exhaustive()
    }
}

/// How often each request has been made within a trial. Clones count together.
#[derive(Debug, Clone, Default)]
pub struct Ordinals(Arc<Mutex<HashMap<blake3::Hash, u32>>>);

impl Ordinals {
    fn next(&self, request: blake3::Hash) -> u32 {
        let mut counts = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let count = counts.entry(request).or_default();
        let ordinal = *count;
        *count += 1;
        ordinal
    }
}

/// A call is about to be made again.
#[derive(Debug)]
pub struct Retry<'a> {
    /// Which model.
    pub model: &'a str,
    /// After which pause; none when it waits in the queue of its pool.
    pub pause: Duration,
    /// Why.
    pub failure: &'a Failure,
}

/// A call that was answered.
#[derive(Debug, Clone, PartialEq)]
pub struct Call {
    /// The answer.
    pub response: Response,
    /// What it cost; `None` when nobody knows the price. Nothing when it came from the cache.
    pub cost: Option<NanoDollars>,
    /// How long the successful attempt took; of an answer from the cache, how long it took when it
    /// was made, and nothing where that is not known.
    pub latency: Duration,
    /// It came from the cache, and so says nothing about the speed of today.
    pub cached: bool,
    /// Attempts that failed before.
    pub retries: u32,
    /// Headers of the answer.
    pub headers: HeaderMap,
}

/// A call that was not answered.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{failure}")]
pub struct CallError {
    /// Why the last attempt failed; without secrets.
    pub failure: Failure,
    /// Attempts that failed before.
    pub retries: u32,
}

impl Client {
    /// A client.
    pub fn new(config: ClientConfig) -> Client {
        Client {
            transport: config.transport.unwrap_or_else(|| Arc::new(Network::default())),
            simulator: bakeoff_sim::Engine::new(config.simulator),
            started: Instant::now(),
            pools: config.pools.unwrap_or_else(|| {
                Arc::new(Pools::with_learned(move |key| config.memory.recall(key)))
            }),
            cache: config.cache,
            flights: Flights::default(),
            retry: config.retry,
            redactor: config.redactor,
            on_http: config.on_http,
        }
    }

    /// Calls a model. The request's `model` is filled in.
    pub async fn call(
        &self,
        model: &Model,
        request: Request,
        context: &CallContext<'_>,
    ) -> Result<Call, CallError> {
        let prepared = Prepared::new(model, request);
        // Only the cache and the simulator care which repetition this is.
        let wanted = self.cache.is_some() || model.is_simulated();
        let identity = wanted.then(|| prepared.identity(model));
        let ordinal = identity.map_or(0, |identity| context.ordinals.next(identity));
        let key = self.cache.as_ref().zip(identity).map(|(cache, identity)| {
            let (endpoint, request) = (&model.pool.endpoint, identity.as_bytes());
            let scope = format!("{}\0{}", cache.scope(), context.sample);
            CacheKey::new(&scope, endpoint, request, context.trial, ordinal)
        });
        // Held to the end, so that an equal call waits for this answer instead of paying for it again.
        let _turn = match key {
            Some(key) => Some(self.turn(key, context).await?),
            None => None,
        };
        if let (Some(cache), Some(key)) = (&self.cache, &key)
            && let Some(stored) = cache.get(key)
        {
            return Ok(Call {
                response: stored.response,
                cost: Some(NanoDollars(0)),
                latency: stored.latency.unwrap_or_default(),
                cached: true,
                retries: 0,
                headers: HeaderMap::new(),
            });
        }
        let mut waited = RetryProgress::default();
        let masked = context
            .on_delta
            .filter(|_| !self.redactor.is_empty())
            .map(|listener| Masked::new(&self.redactor, listener));
        let call = match &masked {
            None => self.call_to_its_end(model, &prepared, ordinal, context, &mut waited).await?,
            Some(masked) => {
                let on_retry = |retry: &Retry<'_>| {
                    masked.forget();
                    if let Some(on_retry) = context.on_retry {
                        on_retry(retry);
                    }
                };
                let on_delta = |delta: &Delta| masked.tell(delta);
                let context = CallContext {
                    run: context.run,
                    sample: context.sample,
                    trial: context.trial,
                    ordinals: context.ordinals.clone(),
                    cancel: context.cancel.clone(),
                    stop: context.stop.clone(),
                    on_retry: Some(&on_retry),
                    on_delta: Some(&on_delta),
                };
                let call = self.call_to_its_end(model, &prepared, ordinal, &context, &mut waited);
                let call = call.await?;
                masked.finish();
                call
            }
        };
        if let (Some(cache), Some(key)) = (&self.cache, key) {
            cache.put(key, &call.response, call.latency);
        }
        Ok(call)
    }

    /// Waits until no equal call is under way.
    async fn turn(&self, key: CacheKey, context: &CallContext<'_>) -> Result<Turn<'_>, CallError> {
        let place = self.flights.queue(key);
        tokio::select! {
            biased;
            () = context.cancel.cancelled() => Err(cancelled(0)),
            turn = place.turn() => Ok(turn),
            () = context.stop.cancelled() => Err(cancelled(0)),
        }
    }

    async fn call_to_its_end(
        &self,
        model: &Model,
        prepared: &Prepared,
        ordinal: u32,
        context: &CallContext<'_>,
        waited: &mut RetryProgress,
    ) -> Result<Call, CallError> {
        let work = self.call_until_settled(model, prepared, ordinal, context, waited);
        tokio::select! {
            // Cancelling comes first, so that nobody takes a permit that another one gave up.
            biased;
            () = context.cancel.cancelled() => Err(cancelled(waited.retries)),
            result = work => result,
        }
    }

    /// The pool that calls of a model go through.
    pub fn pool(&self, model: &Model) -> Result<Pool, LimitsError> {
        self.pools.get(&model.pool, model.limits)
    }

    /// All pools that there are.
    pub fn pools(&self) -> Vec<Pool> {
        self.pools.all().into_iter().map(|(_, pool)| pool).collect()
    }

    /// What is worth remembering of the pools.
    pub fn learned(&self) -> Vec<(PoolKey, LearnedLimit)> {
        let all = self.pools.all().into_iter();
        all.filter_map(|(key, pool)| Some((key, pool.learned()?))).collect()
    }

    /// The answer without secrets: a server may repeat what it was sent, and answers are stored.
    pub(crate) fn without_secrets(&self, response: Response) -> Response {
        if self.redactor.is_empty() {
            return response;
        }
        match serde_json::to_string(&response) {
            Ok(json) if self.redactor.finds_in(&json) => {
                // What cannot be read any more held a secret in an odd place; none of it is kept.
                serde_json::from_str(&self.redactor.scrub(json)).unwrap_or_else(|_| Response {
                    content: vec![Content::text(self.redactor.scrub(response.text()))],
                    id: None,
                    model: None,
                    extra: serde_json::Map::new(),
                    ..response
                })
            }
            _ => response,
        }
    }
}

pub(crate) fn cancelled(retries: u32) -> CallError {
    CallError { failure: Failure::local(ErrorKind::Cancelled, "cancelled"), retries }
}
