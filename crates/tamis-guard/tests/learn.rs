//! The answers of a service teach the guard ids that the service has just created.

#[path = "learn/answers.rs"]
mod answers;
#[path = "learn/hostile.rs"]
mod hostile;
#[path = "learn/places.rs"]
mod places;
#[path = "learn/scripted.rs"]
mod scripted;
