//! The answers of a service teach the guard ids that the service has just created.

mod answers;
mod hostile;
mod places;
mod scripted;
