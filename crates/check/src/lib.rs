//! Is this answer right? The checks over one attempt.
