"""Whether a learner's checker has the rule: dumps made anew, and what it answers to them.

`cases.py` makes the dumps and their answers, `running.py` runs the checker where it can do no harm,
`answers.py` compares, `keeping.py` keeps what went wrong, `grade.py` puts them together.
"""
