-- Whether marks wait.
SELECT EXISTS (SELECT FROM {mark})
