"""What is known about the objects whose methods are recorded, and about their classes.

The calls of a method depend on its object, beside the arguments. So the recordings are kept in
three levels: a `Receiver` for each object has its states, an `ObjectState` has the recordings that
were made in one state, and a `MethodCase` is the specialization for one signature.

==========  ========================================================================================
Module      Content
==========  ========================================================================================
`case`      `MethodCase`: the recordings for one signature, and what they cost
`state`     `ObjectState`: one state of an object. If an object of a class has died, the recordings
            of later ones are shared with objects of equal contents
`receiver`  `Receiver`: an object, its known states, and the failures of its recordings
==========  ========================================================================================
"""
