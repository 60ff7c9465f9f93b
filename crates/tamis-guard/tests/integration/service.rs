//! A guarded service that answers with what a test wants.

use std::collections::VecDeque;
use std::convert::Infallible;
use std::fmt::Debug;
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use bytes::Bytes;
use http::{Request, Response};
use http_body::{Body, Frame, SizeHint};
use http_body_util::BodyExt as _;
use tamis_guard::{GuardedBody, IdSet, IdSetOptions, Route};
use tower_service::Service;

/// Returns a set that is synced and knows these ids.
pub fn known(options: IdSetOptions, known: impl IntoIterator<Item = i64>) -> Arc<IdSet> {
    Arc::new(IdSet::from_ids(options, known).unwrap())
}

/// Returns a route whose ids are at these places.
pub fn route(path: &str, places: &[&str], ids: &Arc<IdSet>) -> Route {
    let (first, others) = places.split_first().unwrap();
    let route = Route::new(path, *first, Arc::clone(ids)).unwrap();
    others.iter().fold(route, |route, place| route.with_id(*place, Arc::clone(ids)).unwrap())
}

/// Returns a route with changed settings.
pub fn set(mut route: Route, set: impl FnOnce(&mut Route)) -> Route {
    set(&mut route);
    route
}

/// A body with these frames.
#[derive(Clone, Debug, Default)]
pub struct Script {
    pub frames: VecDeque<Result<Bytes, io::ErrorKind>>,
    pub trailers: bool,
    /// The length that the head of the message promises.
    pub promised: Option<u64>,
}

impl Script {
    pub fn whole(text: &str) -> Self {
        let frames: VecDeque<_> =
            if text.is_empty() { [].into() } else { [Ok(text.to_owned().into())].into() };
        Self { frames, promised: Some(text.len() as u64), trailers: false }
    }

    /// Returns a body without a promised length.
    pub fn chunked<'t>(parts: impl IntoIterator<Item = &'t [u8]>) -> Self {
        let frames = parts.into_iter().map(|part| Ok(Bytes::copy_from_slice(part))).collect();
        Self { frames, ..Self::default() }
    }

    /// Returns the body, which breaks off at its end.
    pub fn broken(mut self) -> Self {
        self.frames.push_back(Err(io::ErrorKind::BrokenPipe));
        self
    }
}

impl Body for Script {
    type Data = Bytes;
    type Error = io::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        _: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, io::Error>>> {
        Poll::Ready(match self.frames.pop_front() {
            Some(frame) => Some(frame.map(Frame::data).map_err(io::Error::from)),
            None if self.trailers => {
                self.trailers = false;
                Some(Ok(Frame::trailers(http::HeaderMap::new())))
            }
            None => None,
        })
    }

    fn is_end_stream(&self) -> bool {
        self.promised.is_some() && self.frames.is_empty()
    }

    fn size_hint(&self) -> SizeHint {
        self.promised.map_or_else(SizeHint::new, SizeHint::with_exact)
    }
}

type Answer<T> = Pin<Box<dyn Future<Output = T> + Send>>;

/// A service that answers with a function of the request and its body.
#[derive(Clone)]
pub struct Scripted(Arc<dyn Fn(Request<Bytes>) -> Answer<Response<Script>> + Send + Sync>);

impl Scripted {
    pub fn new<F>(answer: impl Fn(Request<Bytes>) -> F + Send + Sync + 'static) -> Self
    where
        F: Future<Output = Response<Script>> + Send + 'static,
    {
        Self(Arc::new(move |request| Box::pin(answer(request))))
    }
}

impl<B> Service<Request<GuardedBody<B>>> for Scripted
where
    B: Body<Data = Bytes> + Send + 'static,
    B::Error: Debug + Send,
{
    type Response = Response<Script>;
    type Error = Infallible;
    type Future = Answer<Result<Response<Script>, Infallible>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<GuardedBody<B>>) -> Self::Future {
        let answer = Arc::clone(&self.0);
        Box::pin(async move {
            let (parts, body) = request.into_parts();
            let body = body.collect().await.unwrap().to_bytes();
            Ok(answer(Request::from_parts(parts, body)).await)
        })
    }
}
