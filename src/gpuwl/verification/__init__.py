"""Whether a lab is right: cluster and files read again, nothing changed. Behind `gpuwl verify`.

`assess.py` is the way in; each other module knows one kind of thing that can differ, and `grading/`
the checker of step 8. The lab may be the work of a person with kubectl: facts count where the lab
leaves freedom, and every file is taken for a stranger's.
"""
