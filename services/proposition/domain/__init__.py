"""Domain of proposition: prompts, reading of answers, grading, evaluations."""
