//! The client: cache lookup, coalescing of equal calls, and the shared parts that calls need.

use crate::cache::{Cache, CacheKey};
use crate::call::{Call, CallContext, CallError, Retry};
use crate::flight::{FlightPermit, Flights};
use crate::limit_history::LimitHistory;
use crate::model::Model;
use crate::network::Network;
use crate::record::HttpObserver;
use crate::redact::RedactingListener;
use crate::request::PreparedRequest;
use crate::retry::ModelCall;
use crate::service::{Service, ServiceCall, ServiceResponse};
use crate::transport::Transport;
use crate::{Delta, Failure};
use bakeoff_core::{Content, NanoDollars, Redactor, Request, Response};
use bakeoff_pace::{LearnedLimit, LimitsError, Pool, PoolKey, Pools, RetryPolicy, SharedBudget};
use bytes::Bytes;
use futures_util::future::BoxFuture;
use http::HeaderMap;
use std::sync::Arc;
use std::time::Duration;
use tokio::time::Instant;

/// Client that makes calls through pace, with retries, cache and prices. Share it behind an `Arc`.
#[derive(Debug)]
pub struct Client {
    pub(crate) transport: Arc<dyn Transport>,
    pub(crate) simulator: bakeoff_sim::Engine,
    /// Time zero of the simulator.
    pub(crate) started: Instant,
    pub(crate) pools: Arc<Pools>,
    cache: Option<Cache>,
    flights: Flights,
    pub(crate) retry: RetryPolicy,
    pub(crate) deadline: Option<Instant>,
    pub(crate) budget: Option<SharedBudget>,
    pub(crate) redactor: Redactor,
    pub(crate) on_http: Option<HttpObserver>,
}

/// Configuration of a [`Client`]. Every field has a default.
///
/// ```
/// use bakeoff_llm::{Client, ClientConfig};
/// use bakeoff_pace::RetryPolicy;
///
/// let retry = RetryPolicy::default().max_retries(0);
/// let client = Client::new(ClientConfig::default().retry(retry));
/// # drop(client);
/// ```
#[derive(Debug, Default)]
#[non_exhaustive]
pub struct ClientConfig {
    /// Transport for requests; the real network when absent.
    pub transport: Option<Arc<dyn Transport>>,
    /// Simulated provider behind `sim/…`.
    pub simulator: bakeoff_sim::Config,
    /// Simulated models of other crates, in addition to those of `simulator`.
    pub simulated_models: Vec<Arc<dyn bakeoff_sim::ModelBehaviour>>,
    /// Response cache; responses are not cached when absent.
    pub cache: Option<Cache>,
    /// Retry policy; the limits of a model override it.
    pub retry: RetryPolicy,
    /// End of the run. A longer wait that a provider announces stops its pool.
    pub deadline: Option<Instant>,
    /// Budget of all calls. Models without a known price count only towards a limit of tokens.
    pub budget: Option<SharedBudget>,
    /// Secrets to redact in responses and error messages.
    pub redactor: Redactor,
    /// Observer of every request.
    pub on_http: Option<HttpObserver>,
    /// Pools shared with other clients; the client creates its own when absent.
    pub pools: Option<Arc<Pools>>,
    /// Limits learned by earlier runs; the starting point of the client's own pools.
    pub limit_history: LimitHistory,
}

impl ClientConfig {
    /// Sets the transport for requests.
    #[must_use]
    pub fn transport(mut self, transport: Arc<dyn Transport>) -> Self {
        self.transport = Some(transport);
        self
    }

    /// Sets the configuration of the simulated provider.
    #[must_use]
    pub fn simulator(mut self, simulator: bakeoff_sim::Config) -> Self {
        self.simulator = simulator;
        self
    }

    /// Adds simulated models of other crates.
    #[must_use]
    pub fn simulated_models(
        mut self,
        models: impl IntoIterator<Item = Arc<dyn bakeoff_sim::ModelBehaviour>>,
    ) -> Self {
        self.simulated_models.extend(models);
        self
    }

    /// Sets the response cache.
    #[must_use]
    pub fn cache(mut self, cache: Cache) -> Self {
        self.cache = Some(cache);
        self
    }

    /// Sets the retry policy.
    #[must_use]
    pub fn retry(mut self, retry: RetryPolicy) -> Self {
        self.retry = retry;
        self
    }

    /// Sets the end of the run.
    #[must_use]
    pub fn deadline(mut self, deadline: Instant) -> Self {
        self.deadline = Some(deadline);
        self
    }

    /// Sets the budget of all calls.
    #[must_use]
    pub fn budget(mut self, budget: SharedBudget) -> Self {
        self.budget = Some(budget);
        self
    }

    /// Sets the secrets to redact.
    #[must_use]
    pub fn redactor(mut self, redactor: Redactor) -> Self {
        self.redactor = redactor;
        self
    }

    /// Sets the observer of requests.
    #[must_use]
    pub fn on_http(mut self, observer: HttpObserver) -> Self {
        self.on_http = Some(observer);
        self
    }

    /// Sets pools that are shared with other clients.
    #[must_use]
    pub fn pools(mut self, pools: Arc<Pools>) -> Self {
        self.pools = Some(pools);
        self
    }

    /// Sets the limits learned by earlier runs.
    #[must_use]
    pub fn limit_history(mut self, limit_history: LimitHistory) -> Self {
        self.limit_history = limit_history;
        self
    }
}

impl Default for Client {
    /// Creates a client with the default configuration.
    fn default() -> Client {
        Client::new(ClientConfig::default())
    }
}

impl Client {
    /// Creates a client.
    pub fn new(mut config: ClientConfig) -> Client {
        config.simulator.behaviours.append(&mut config.simulated_models);
        Client {
            transport: config.transport.unwrap_or_else(|| Arc::new(Network::default())),
            simulator: bakeoff_sim::Engine::new(config.simulator),
            started: Instant::now(),
            pools: config.pools.unwrap_or_else(|| {
                Arc::new(Pools::with_learned(move |key| config.limit_history.recall(key)))
            }),
            cache: config.cache,
            flights: Flights::default(),
            retry: config.retry,
            deadline: config.deadline,
            budget: config.budget,
            redactor: config.redactor,
            on_http: config.on_http,
        }
    }

    /// Calls a model. The `model` field of the request is overwritten.
    ///
    /// # Errors
    ///
    /// When the last permitted request fails, or the call is cancelled or stopped.
    // Boxed, like the other entry points of this crate: a future that is not boxed is compiled again in every
    // crate that awaits it.
    pub fn call<'a>(
        &'a self,
        model: &'a Model,
        request: Request,
        context: &'a CallContext<'_>,
    ) -> BoxFuture<'a, Result<Call, CallError>> {
        Box::pin(self.call_or_recall(model, request, context))
    }

    /// Returns the cached response, or makes the call and caches its response.
    async fn call_or_recall(
        &self,
        model: &Model,
        request: Request,
        context: &CallContext<'_>,
    ) -> Result<Call, CallError> {
        let prepared = PreparedRequest::new(model, request);
        // Only the cache and the simulator depend on the ordinal.
        let needs_ordinal = self.cache.is_some() || model.is_simulated();
        let identity = needs_ordinal.then(|| prepared.identity(model));
        let ordinal = identity.map_or(0, |identity| context.ordinals.next(identity));
        let key = self.cache.as_ref().zip(identity).map(|(cache, identity)| {
            let (endpoint, request) = (&model.pool.endpoint, identity.as_bytes());
            let scope = format!("{}\0{}", cache.scope(), context.sample);
            CacheKey::new(&scope, endpoint, request, context.trial, ordinal)
        });
        // Held until the response is cached, so that an equal call waits for it instead of paying again.
        let _permit = match key {
            Some(key) => Some(self.flight_permit(key, context).await?),
            None => None,
        };
        if let (Some(cache), Some(key)) = (&self.cache, &key)
            && let Some(entry) = cache.get(key)
        {
            return Ok(Call {
                response: entry.response,
                cost: Some(NanoDollars(0)),
                latency: entry.latency.unwrap_or_default(),
                cached: true,
                retries: 0,
                lost: NanoDollars(0),
                headers: HeaderMap::new(),
            });
        }
        let model_call = ModelCall { client: self, model, request: &prepared, ordinal, context };
        let listener = context
            .on_delta
            .filter(|_| !self.redactor.is_empty())
            .map(|listener| RedactingListener::new(&self.redactor, listener));
        let call = match &listener {
            None => model_call.run().await?,
            Some(listener) => {
                let on_retry = |retry: &Retry<'_>| {
                    listener.reset();
                    if let Some(on_retry) = context.on_retry {
                        on_retry(retry);
                    }
                };
                let on_delta = |delta: &Delta| listener.forward(delta);
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
                let call = ModelCall { context: &context, ..model_call }.run().await?;
                listener.flush();
                call
            }
        };
        if let (Some(cache), Some(key)) = (&self.cache, key) {
            cache.put(key, &call.response, call.latency);
        }
        Ok(call)
    }

    /// Sends a request to a service and returns its response.
    ///
    /// A request that the service rejected without processing it (429, 503) is retried a few times. Any other
    /// failure is final, because the service may have processed the request.
    ///
    /// # Errors
    ///
    /// When there is no response, or its status is not a success.
    pub fn call_service<'a>(
        &'a self,
        service: &'a Service,
        body: Bytes,
        timeout: Duration,
        context: &'a CallContext<'_>,
    ) -> BoxFuture<'a, Result<ServiceResponse, CallError>> {
        Box::pin(ServiceCall { client: self, service, body, context }.run(timeout))
    }

    /// Waits until no equal call is in flight.
    async fn flight_permit(
        &self,
        key: CacheKey,
        context: &CallContext<'_>,
    ) -> Result<FlightPermit<'_>, CallError> {
        let entry = self.flights.enqueue(key);
        tokio::select! {
            biased;
            () = context.cancel.cancelled() => Err(CallError::cancelled(0)),
            permit = entry.acquire() => Ok(permit),
            () = context.stop.cancelled() => Err(CallError::cancelled(0)),
        }
    }

    /// Returns the pool of a model.
    ///
    /// # Errors
    ///
    /// When the limits of the model are invalid.
    pub fn pool(&self, model: &Model) -> Result<Pool, LimitsError> {
        self.pools.get(&model.pool, model.limits)
    }

    /// Returns the budget of all calls.
    pub fn budget(&self) -> Option<&SharedBudget> {
        self.budget.as_ref()
    }

    /// Returns all pools created so far.
    pub fn pools(&self) -> Vec<Pool> {
        self.pools.all().into_iter().map(|(_, pool)| pool).collect()
    }

    /// Returns the limits learned for the pools, for [`LimitHistory::save`].
    pub fn learned(&self) -> Vec<(PoolKey, LearnedLimit)> {
        let all = self.pools.all().into_iter();
        all.filter_map(|(key, pool)| Some((key, pool.learned()?))).collect()
    }

    /// Redacts secrets in a response: a server may echo what it was sent, and responses are stored.
    pub(crate) fn redact_response(&self, response: Response) -> Response {
        if self.redactor.is_empty() {
            return response;
        }
        match serde_json::to_string(&response) {
            Ok(json) if self.redactor.finds_in(&json) => {
                // Redaction can break the JSON when a secret spans more than one value. Only the text is
                // kept then.
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

    /// Redacts secrets in a failure.
    pub(crate) fn redact_failure(&self, mut failure: Failure) -> Failure {
        failure.message = self.redactor.scrub(failure.message);
        failure.code = failure.code.map(|code| self.redactor.scrub(code));
        failure
    }

    /// Redacts secrets in a body. This happens before error messages are truncated, because a truncated
    /// secret would no longer be recognised.
    pub(crate) fn redact_body(&self, body: &[u8]) -> String {
        self.redactor.scrub(String::from_utf8_lossy(body).into_owned())
    }
}
