"""Questions that people ask of log directories, a file for each.

Each answers in the same way, and its command, its job and the report's page are its faces:

1. Its settings are one object of typed values, which the face has checked.
2. It asks `Views` for what it needs. A task reduces what it reads (plan, then part).
3. It combines the parts to the tables that it returns. Their names and columns are in
   `schemas/tables`, the same for every face.
4. Its answer has the totals, whether there are findings, and the sentences that a person reads.
   What was not read is one of them.
5. It prints nothing, parses no argument, and knows neither Spark nor processes.
"""
