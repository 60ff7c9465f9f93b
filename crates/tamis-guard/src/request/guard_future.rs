//! The future of a guarded service.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use http::{Response, StatusCode};
use http_body::Body;
use http_body_util::{Either, Full};
use pin_project_lite::pin_project;
use tamis_sources::{PassReason, Verdict};

use crate::request::decision::Decision;
use crate::request::learn::{LearnBody, Lessons};
use crate::request::routes::Routes;
#[cfg(feature = "layer")]
use crate::request::turn;

/// The body of a response. The guard or the inner service has created the body.
pub type AnswerBody<B> = Either<Full<Bytes>, LearnBody<B>>;

/// Wraps a response of the inner service, so that the guard learns ids from the response.
pub(crate) fn answer_of<B: Body>(
    answer: Response<B>,
    lessons: Option<Lessons>,
) -> Response<AnswerBody<B>> {
    match lessons {
        None => answer.map(|body| Either::Right(LearnBody::unread(body))),
        Some(lessons) => LearnBody::with_lessons(answer, lessons).map(Either::Right),
    }
}

/// A boxed future.
type Boxed<B, E> = Pin<Box<dyn Future<Output = Result<Response<AnswerBody<B>>, E>> + Send>>;

pin_project! {
    /// The future of a guarded service. `F` is the future of the inner service, and `B` is the body of its response.
    ///
    /// The future allocates no memory for a refusal, or for a request that passes because of its head.
    pub struct GuardFuture<F, B, E> {
        #[pin]
        state: State<F, B, E>,
    }
}

pin_project! {
    #[project = StateProjection]
    enum State<F, B, E> {
        Answered { response: Option<Response<AnswerBody<B>>> },
        Passed { #[pin] future: F, decided: Option<Decided> },
        Boxed { future: Boxed<B, E> },
    }
}

/// The decision about a request, and its route.
pub(crate) struct Decided {
    pub(crate) routes: Arc<Routes>,
    pub(crate) index: usize,
    pub(crate) decision: Decision,
}

impl Decided {
    /// Learns from the response of the inner service.
    pub(crate) fn learn<B>(&self, answer: &Response<B>) {
        let (route, status) = (&self.routes[self.index], answer.status());
        if status.is_success() {
            self.decision.succeeded();
        }
        match self.decision.verdict {
            Verdict::Pass(PassReason::Known) if status == StatusCode::NOT_FOUND => {
                route.counters.count_not_found();
                self.decision.not_found(answer.headers());
                #[cfg(feature = "layer")]
                turn::not_found(route, &self.decision);
            }
            Verdict::Refuse(_) if status.is_success() => route.counters.count_misjudged(),
            _ => {}
        }
    }
}

impl<F, B, E> GuardFuture<F, B, E> {
    /// Returns a future that is ready with a response.
    pub(crate) fn answered(response: Response<AnswerBody<B>>) -> Self {
        Self { state: State::Answered { response: Some(response) } }
    }

    /// Returns the future of the inner service for a request that passed.
    pub(crate) fn passed(future: F, decided: Option<Decided>) -> Self {
        Self { state: State::Passed { future, decided } }
    }

    /// Returns a boxed future for a request that needs several steps.
    pub(crate) fn boxed(
        future: impl Future<Output = Result<Response<AnswerBody<B>>, E>> + Send + 'static,
    ) -> Self {
        Self { state: State::Boxed { future: Box::pin(future) } }
    }
}

impl<F, B, E> Future for GuardFuture<F, B, E>
where
    F: Future<Output = Result<Response<B>, E>>,
    B: Body,
{
    type Output = Result<Response<AnswerBody<B>>, E>;

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        match self.project().state.project() {
            StateProjection::Answered { response } => {
                Poll::Ready(Ok(response.take().expect("a future that is ready is polled once")))
            }
            StateProjection::Passed { future, decided } => {
                let answer = ready!(future.poll(context))?;
                if let Some(decided) = decided {
                    decided.learn(&answer);
                }
                Poll::Ready(Ok(answer.map(|body| Either::Right(LearnBody::unread(body)))))
            }
            StateProjection::Boxed { future } => future.as_mut().poll(context),
        }
    }
}

impl<F, B, E> std::fmt::Debug for GuardFuture<F, B, E> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("GuardFuture").finish_non_exhaustive()
    }
}
